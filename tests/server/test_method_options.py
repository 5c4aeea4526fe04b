"""The options of methods are written once, in their dataclasses: the app, its API and its schema follow them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from msg2 import infer
from msg2.inference import METHODS
from msg2.options import option_specs
from tests.server.conftest import learnt, refused, uploaded
from tests.server.test_stateless import ROWS, TASK
from tests.server.toy_method import toy_method


@pytest.fixture
def toy() -> Iterator[str]:
    """The name of a method that is registered for the time of a test."""
    with toy_method() as name:
        yield name


def schemas_of_options(client: TestClient) -> dict[str, Any]:
    schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    options = schemas["InferRequest"]["properties"]["options"]
    assert options == next(schemas[name] for name in schemas if name.startswith("JobRequest"))["properties"]["options"]
    return {schema["title"].removeprefix("Options of the method "): schema for schema in options["anyOf"]}


def test_every_option_of_every_method_is_offered_and_in_the_schema(client: TestClient) -> None:
    choices, schemas = client.get("/api/choices").json(), schemas_of_options(client)
    assert list(choices["method_options"]) == list(choices["methods"]) == list(schemas) == list(METHODS)
    for name, method in METHODS.items():
        specs = option_specs(method.options)
        offered = choices["method_options"][name]
        assert offered["summary"] == method.summary
        assert [(o["name"], o["default"], o["help"]) for o in offered["options"]] == [
            (spec.name, spec.default_text, spec.help) for spec in specs
        ]
        assert list(choices["methods"][name]) == list(schemas[name]["properties"]) == [spec.name for spec in specs]
        assert schemas[name]["additionalProperties"] is False
        for spec in specs:
            assert spec.help, f"the option {spec.name} of {name} has no help"
            assert schemas[name]["properties"][spec.name]["description"] == spec.help


def test_a_method_that_is_registered_appears(client: TestClient, toy: str) -> None:
    offered = client.get("/api/choices").json()["method_options"][toy]
    assert offered["options"][0] == {
        "name": "patience",
        "kind": "number",
        "choices": ["endless"],
        "default": "0.5",
        "help": "How long it waits for the kettle, in minutes.",
    }
    schema = schemas_of_options(client)[toy]["properties"]
    assert list(schema) == ["patience", "polite", "manner", "stops"]
    assert schema["patience"] == {
        "anyOf": [{"type": "number"}, {"type": "string", "const": "endless"}, {"type": "null"}],
        "default": 0.5,
        "description": "How long it waits for the kettle, in minutes.",
    }
    methods = client.get("/api/openapi.json").json()["components"]["schemas"]["InferRequest"]["properties"]["method"]
    assert toy in methods["enum"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"patience": "long"}, "patience is 'long', it must be a number or 'endless'"),
        ({"patience": True}, "patience is True"),
        ({"polite": "yes"}, "polite is 'yes', it must be true or false"),
        ({"polite": 1}, "polite is 1"),
        ({"manner": "slowly"}, "manner is 'slowly', it must be 'slow' or 'quick'"),
        ({"stops": [1, "x"]}, "stops is [1, 'x']"),
        ({"stops": 1}, "stops is 1"),
        ({"delta": 0.5}, "the method 'toy' has no option 'delta'"),
    ],
)
def test_what_a_method_does_not_take_is_refused_at_once(
    client: TestClient, toy: str, options: dict[str, Any], words: str
) -> None:
    data = uploaded(client)["id"]
    for path, body in (("infer", {"labels": ROWS}), ("work", {"data": data})):
        answer = client.post(f"/api/{path}", json={**body, "method": toy, "options": options})
        assert refused(answer).startswith(words)
    assert client.get("/api/work").json() == {"work": []}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"delta": 0.9, "alpha": None, "recency": None, "max_literals": None}, {"delta": 0.9}),
        ({"delta": 1, "max_literals": "none"}, {"delta": 1.0, "max_literals": None}),
        ({"delta": "auto", "max_literals": 3.0, "alpha": 0}, {"delta": "auto", "max_literals": 3, "alpha": 0.0}),
        ({"recency_rule": "satisfied", "exclude_relatives": True},
         {"recency_rule": "satisfied", "exclude_relatives": True}),
    ],
)  # fmt: skip
def test_options_mean_what_they_mean_in_the_library(
    client: TestClient, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    answer = client.post("/api/infer", json={"labels": ROWS, "task": "toast", "method": "msg2", "options": given})
    assert answer.status_code == 200, answer.text
    assert answer.json() == infer(TASK, "msg2", **expected).to_json()


def test_a_job_keeps_its_options(client: TestClient) -> None:
    options = {"delta": 0.9, "max_literals": "none"}
    work = learnt(client, uploaded(client)["id"], method="msg2", options=options)
    assert work["job"]["options"] == options
    graph = client.get(f"/api/work/{work['id']}/as/json").json()
    assert (graph["method"]["options"]["delta"], graph["method"]["options"]["max_literals"]) == (0.9, None)
