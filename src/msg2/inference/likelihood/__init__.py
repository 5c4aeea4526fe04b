"""`likelihood`: the partial order under which noisy demonstrations are most probable."""

from msg2.inference.likelihood.learner import LikelihoodOptions, learn

__all__ = ["LikelihoodOptions", "learn"]
