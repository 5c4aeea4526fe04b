"""The figures of the paper, drawn again: graphs, completion, and the search for a precondition."""

SEED = 0
"""Of the simulations that the figures show."""
