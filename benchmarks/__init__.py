"""Speed and growth of graph inference, always beside a baseline in the same run."""
