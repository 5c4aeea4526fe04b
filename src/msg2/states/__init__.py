"""Labels + features -> completed labels: a model of the state of every step, its training, and what it fills in."""
