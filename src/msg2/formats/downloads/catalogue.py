"""The public annotation sets that msg2 reads: where their home is, under which licence, and what is fetched of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_GITHUB = "https://raw.githubusercontent.com"
_TASK_GRAPHS = f"{_GITHUB}/fpv-iplab/Differentiable-Task-Graph-Learning/HEAD/data/captaincook4d"
_RECIPES = (
    "blenderbananapancakes", "breakfastburritos", "broccolistirfry", "buttercorncup", "capresebruschetta",
    "cheesepimiento", "coffee", "cucumberraita", "dressedupmeatballs", "herbomeletwithfriedtomatoes",
    "microwaveeggsandwich", "microwavefrenchtoast", "microwavemugpizza", "mugcake", "panfriedtofu", "pinwheels",
    "ramen", "sautedmushrooms", "scrambledeggs", "spicedhotchocolate", "spicytunaavocadowraps", "tomatochutney",
    "tomatomozzarellasalad", "zoodles",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PublicDataset:
    """An annotation set. `files` is path: URL; a zip archive among them is unpacked beside itself.

    Where there are no `files`, the set has to be fetched by hand from its `home`.
    """

    title: str
    home: str
    licence: str
    size: str
    entry: str
    """What is to be given to the other commands, within the set's folder."""
    files: Mapping[str, str]


def _fetched_by_hand(title: str, home: str, licence: str, entry: str) -> PublicDataset:
    return PublicDataset(title, home, licence, "by hand", entry, {})


PUBLIC_DATASETS: Mapping[str, PublicDataset] = {
    "crosstask": PublicDataset(
        "CrossTask",
        "https://github.com/DmZhukov/CrossTask",
        "BSD 3-Clause (the repository)",
        "1 MB",
        "crosstask_release",
        {"crosstask_release.zip": "https://www.di.ens.fr/~dzhukov/crosstask/crosstask_release.zip"},
    ),
    "captaincook4d": PublicDataset(
        "CaptainCook4D, with its task graphs",
        "https://github.com/CaptainCook4D/annotations",
        "CC BY-NC-SA 4.0",
        "1.5 MB",
        "complete_step_annotations.json",
        {
            "complete_step_annotations.json": f"{_GITHUB}/CaptainCook4D/annotations/HEAD/annotation_json/"
            "complete_step_annotations.json",
            "task_graph_generation_annotations.json": f"{_TASK_GRAPHS}/task_graph_generation_annotations.json",
            **{f"task_graphs/{name}.json": f"{_TASK_GRAPHS}/ground_truth_task_graphs/{name}.json" for name in _RECIPES},
        },
    ),
    "coin": PublicDataset(
        "COIN",
        "https://github.com/coin-dataset/annotations",
        "for research only",
        "some MB",
        "COIN.json",
        {"COIN.json": f"{_GITHUB}/coin-dataset/annotations/master/COIN.json"},
    ),
    "epic-tent": PublicDataset(
        "EPIC-Tent",
        "https://github.com/youngkyoonjang/EPIC_Tent2019",
        "not stated; ask the authors",
        "some 100 kB",
        "Synchronised_action_label.txt",
        {
            name: f"{_GITHUB}/youngkyoonjang/EPIC_Tent2019/HEAD/{name}"
            for name in ("Synchronised_action_label.txt", "Synchronised_error_label.txt", "README.md")
        },
    ),
    "assembly101": _fetched_by_hand(
        "Assembly101", "https://github.com/assembly-101/assembly101-annotations", "CC BY-NC 4.0", "coarse-annotations"
    ),
    "egoprocel": _fetched_by_hand("EgoProceL", "https://sid2697.github.io/egoprocel", "see its page", "annotations"),
    "ego-exo4d": _fetched_by_hand(
        "Ego-Exo4D keysteps", "https://ego-exo4d-data.org", "a licence to be signed", "annotations"
    ),
    "procel": _fetched_by_hand(
        "ProceL", "https://www.khoury.northeastern.edu/home/eelhami/procel.htm", "see its page", "ProceL_dataset"
    ),
}
