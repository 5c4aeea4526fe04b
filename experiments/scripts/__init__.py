"""A text-to-text model of scripts: from the name of a task and its unordered steps to a partial order of them."""
