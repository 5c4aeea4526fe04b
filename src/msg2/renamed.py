"""Names of version 0.1 that are called otherwise since: whoever imports one is told the new name.

They are no aliases: each raises, since what it names has changed too. `docs/upgrading.md` lists the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

RENAMED = {
    "msg2.evidence": "msg2.sequences",
    "msg2.experiments": "the folder 'experiments' of the repository, run by `python -m experiments NAME`",
    "msg2.read_graph": "msg2.load",
    "msg2.readers": "msg2.formats",
    "msg2.worlds": "msg2.simulation",
    "msg2.assist.Ranked": "msg2.assist.RankedStep",
    "msg2.assist.Report": "msg2.assist.CheckReport",
    "msg2.assist.Skipped": "msg2.assist.Mistake, of the kind 'left out'",
    "msg2.assist.evaluate": "msg2.assist.evaluate_ranker",
    "msg2.assist.split": "msg2.assist.train_test_split",
    "msg2.graph.always": "msg2.graph.is_tautology",
    "msg2.graph.dnf": "msg2.graph.disjunctive_normal_form",
    "msg2.graph.equivalent": "msg2.graph.are_equivalent",
    "msg2.graph.from_json": "msg2.graph.formula_from_json",
    "msg2.graph.simplified": "msg2.graph.simplify",
    "msg2.graph.wiring": "msg2.graph.node_link_graph",
    "msg2.inference.Study": "msg2.inference.InferenceResult",
    "msg2.inference.method_and_options": "msg2.inference.make_options",
    "msg2.inference.study": "msg2.inference.run_inference",
    "msg2.metrics.Scores": "msg2.metrics.GraphScores",
    "msg2.metrics.matched": "msg2.metrics.match_step_names",
    "msg2.metrics.scores": "msg2.metrics.score_graph",
}
"""From the old names to the new ones, or to what there is instead."""

RENAMED_COMMANDS = {"experiment": "python -m experiments, in the repository"}
"""Commands of version 0.1, and what there is instead."""


def renamed_message(old: str, new: str) -> str:
    """The sentence that leads from a name of version 0.1 to what there is instead.

    Parameters
    ----------
    old, new : str
        As in `RENAMED`.

    Returns
    -------
    str
        One line.

    >>> renamed_message("msg2.read_graph", "msg2.load")
    "'msg2.read_graph' of version 0.1 is now msg2.load; see Upgrading from 0.1 in the documentation"
    """
    return f"'{old}' of version 0.1 is now {new}; see Upgrading from 0.1 in the documentation"


class RenamedNameFinder:
    """Asked by Python for modules that nobody else found: ``import msg2.readers``, ``from msg2 import read_graph``."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find nothing, but say so where the name is an old one.

        Parameters
        ----------
        name : str
            The full name of what is imported.
        path, target : ignored
            Part of the protocol of `sys.meta_path`.

        Raises
        ------
        ModuleNotFoundError
            With the new name in its message.
        """
        if name in RENAMED:  # without `name=`, since `from msg2 import …` would then show a message of its own
            raise ModuleNotFoundError(renamed_message(name, RENAMED[name]))
        return None
