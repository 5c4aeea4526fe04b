from __future__ import annotations

import copy
import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.json_schema import GenerateJsonSchema

from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.graph.graph_file import GraphFileContent
from msg2.text import name_fault

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = json.loads(resources.files("msg2.graph").joinpath("schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

GOOD: dict[str, Any] = {
    "format": "msg2.graph/2",
    "task": "make coffee",
    "steps": ["boil water", "grind beans", "open ground coffee", "pour water"],
    "preconditions": {"pour water": {"all": ["boil water", {"any": ["grind beans", {"not": "open ground coffee"}]}]}},
    "order": [["grind beans", "boil water"]],
    "exclusive": [["grind beans", "open ground coffee"]],
    "optional": ["open ground coffee"],
    "repeats": {"pour water": 0.25},
    "responses": [["boil water", "pour water"], ["boil water", {"any": ["grind beans", "open ground coffee"]}]],
    "loops": [{"steps": ["boil water", "pour water"], "back": ["grind beans"], "share": 0.1}],
    "descriptions": {"boil water": "Bring half a litre to the boil."},
    "warnings": [{"text": "Hot.", "step": "boil water"}, {"text": "Wear gloves."}],
    "tools": ["kettle"],
    "version": "2",
    "reviewed": {"by": "Ada", "on": "2026-11-18"},
    "method": {"name": "msg2", "options": {"delta": 0.96}, "videos": ["v1"], "mine": [1]},
    "evidence": {"pour water": {"videos": 51, "holds": 47, "mine": None}},
}


class WithoutTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, _: object) -> bool:
        return False


def test_the_schema_is_that_of_the_model() -> None:
    """The file in the package is `json.dumps(expected, indent=2, ensure_ascii=False)` and a line break."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:msg2:graph:2"}
    expected = {**head, **GraphFileContent.model_json_schema(schema_generator=WithoutTitles)}
    assert expected == SCHEMA


@st.composite
def good_files(draw: st.DrawFn) -> dict[str, Any]:
    steps = draw(
        st.lists(st.text(min_size=1, max_size=5).filter(lambda text: not name_fault(text)), max_size=5, unique=True)
    )
    preconditions = {}
    for number, name in enumerate(steps):
        leaves: st.SearchStrategy[Any] = st.just(True)
        if number:
            leaves |= st.sampled_from(steps[:number])
        formulas = st.recursive(
            leaves,
            lambda inner: (
                st.builds(lambda f: {"not": f}, inner)
                | st.builds(
                    lambda kind, f: {kind: f}, st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3)
                )
            ),
            max_leaves=6,
        )
        if draw(st.booleans()):
            preconditions[name] = draw(formulas)
    free = st.dictionaries(
        st.text(max_size=4), st.none() | st.integers() | st.lists(st.text(max_size=3), max_size=2), max_size=3
    )
    optional: dict[str, Any] = {"method": draw(free)} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        optional["evidence"] = {name: {"videos": draw(st.integers(0, 9)), **draw(free)} for name in steps}
    task = draw(st.text(max_size=5))
    graph = {"task": task, "steps": steps, "preconditions": preconditions, **optional}
    if len(steps) < 2 or draw(st.booleans()):
        return {"format": "msg2.graph/1", **graph}
    pairs = st.lists(st.sampled_from(steps), min_size=2, max_size=2, unique=True)
    relations = {
        "order": st.lists(pairs.map(lambda pair: sorted(pair, key=steps.index)), max_size=3),
        "exclusive": st.lists(pairs, max_size=2),
        "optional": st.lists(st.sampled_from(steps), unique=True),
        "repeats": st.dictionaries(st.sampled_from(steps), st.floats(0, 1)),
        "responses": st.lists(pairs | pairs.map(lambda pair: [pair[0], {"any": [pair[1], steps[0]]}]), max_size=2),
        "loops": st.lists(st.builds(lambda part, share: {"steps": part, "share": share}, pairs, st.floats(0, 1))),
        "descriptions": st.dictionaries(st.sampled_from(steps), st.text(max_size=5)),
        "tools": st.lists(st.text(max_size=5)),
    }
    drawn = {key: draw(values) for key, values in relations.items() if draw(st.booleans())}
    return {"format": "msg2.graph/2", **graph, **drawn}


@given(good_files())
def test_good_files_pass_both_and_come_back(value: dict[str, Any]) -> None:
    VALIDATOR.validate(value)
    again = SubtaskGraph.from_json(value).to_json()
    VALIDATOR.validate(again)
    assert SubtaskGraph.from_json(again).to_json() == again


WRONG: list[tuple[tuple[Any, ...], Any]] = [
    (("format",), "msg2.graph/3"), (("format",), "msg2.graph/1"), (("format",), None), (("format",), ...),
    (("task",), 3), (("task",), ...),
    (("steps",), "abc"), (("steps",), ...), (("steps", 0), ""), (("steps", 0), 7), (("steps", 0), "pour water"),
    (("preconditions",), []), (("preconditions",), ...), (("preconditions",), None),
    *((("preconditions", "pour water"), formula) for formula in (
        None, False, 1, 0.5, "", [], {}, ["boil water"], {"all": []}, {"any": []}, {"all": "boil water"},
        {"not": ["boil water"]}, {"not": None}, {"xor": ["boil water"]},
        {"all": ["boil water"], "any": ["grind beans"]}, {"all": ["boil water", 3]},
        {"any": [{"all": [True, {"not": {}}]}]},
    )),
    (("order",), {}), (("order", 0), "boil water"), (("order", 0), ["boil water"]), (("order", 0, 1), "grind beans"),
    (("order", 0, 1), 3), (("exclusive",), None), (("exclusive", 0), ["boil water"]), (("optional",), "boil water"),
    (("optional", 0), 1), (("repeats",), []), (("repeats", "pour water"), 1.5), (("repeats", "pour water"), True),
    (("responses",), {}), (("responses", 0), ["boil water"]), (("loops", 0, "steps"), []), (("loops", 0, "share"), 2),
    (("descriptions",), []), (("warnings", 1), "Hot."), (("tools",), "kettle"), (("reviewed",), {}),
    (("method",), []), (("method",), None), (("evidence",), 3), (("evidence",), "text"), (("extra",), 1),
]  # fmt: skip


@pytest.mark.parametrize(("path", "wrong"), WRONG, ids=[f"{'.'.join(map(str, p))}={w!r:.30}" for p, w in WRONG])
def test_malformed_files_fail_both(path: tuple[Any, ...], wrong: Any) -> None:
    value = copy.deepcopy(GOOD)
    VALIDATOR.validate(value)
    SubtaskGraph.from_json(value)
    place: Any = value
    for key in path[:-1]:
        place = place[key]
    if wrong is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = wrong
    assert not VALIDATOR.is_valid(value)
    with pytest.raises(InputError):
        SubtaskGraph.from_json(value)


@pytest.mark.parametrize("value", [None, [], "text", 3, True])
def test_what_is_no_object_fails_both(value: Any) -> None:
    assert not VALIDATOR.is_valid(value)
    with pytest.raises(InputError):
        SubtaskGraph.from_json(value)


@pytest.mark.parametrize(
    "preconditions",
    [{"nap": "boil water"}, {"pour water": "nap"}, {"pour water": "grind beans", "grind beans": "pour water"}],
    ids=["unknown key", "unknown name", "cycle"],
)
def test_what_the_schema_leaves_to_the_parser(preconditions: dict[str, Any]) -> None:
    value = {**GOOD, "preconditions": preconditions}
    assert VALIDATOR.is_valid(value)
    with pytest.raises(InputError):
        SubtaskGraph.from_json(value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("responses", [["boil water", "tea"]]),
        ("responses", [["tea", "boil water"]]),
        ("loops", [{"steps": ["boil water"], "back": ["tea"], "share": 0.5}]),
        ("descriptions", {"tea": "Drink it."}),
        ("warnings", [{"text": "Hot.", "step": "tea"}]),
    ],
)
def test_every_name_is_a_step(key: str, value: object) -> None:
    with pytest.raises(InputError, match=f"(?s){key}.*'tea' is not among the steps of the graph"):
        SubtaskGraph.from_json({**GOOD, key: value})
