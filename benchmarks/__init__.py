"""Speed and growth of graph inference and of state prediction, always beside a baseline in the same run."""
