"""`likelihood`: the partial order under which noisy demonstrations are most probable."""

from msg2.inference.likelihood.learner import learn
from msg2.inference.likelihood.likelihood_options import LikelihoodOptions

__all__ = ["LikelihoodOptions", "learn"]
