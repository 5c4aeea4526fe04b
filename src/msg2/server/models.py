"""What is asked over the wire. The types are the schema of the API, and nothing that does not fit them gets in."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from msg2.graph.subtask import FORMAT
from msg2.inference import DEFAULT, METHODS
from msg2.options import NextStepOptions


class Model(BaseModel):
    """Nothing is guessed: a number is no text, and a key that is not known is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


def _plain(value: Any) -> Any:
    """Refuse what no JSON file can hold: halves of characters, numbers that are too large."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("has a number or a character that no file can hold, or is nested too deeply") from None
    return value


def _integral(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is as whole as 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = BeforeValidator(_integral)
Id: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="32 hexadecimal digits.")]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=100_000)]
FileName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
Asked: TypeAlias = Annotated[str, Field(min_length=1, max_length=2000)]
"""A name in an address, which cannot be of any length."""
Pair: TypeAlias = Annotated[list[Name], Field(min_length=2, max_length=2, description="[before, after]")]
Seconds: TypeAlias = Annotated[float, Field(ge=0)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Graph: TypeAlias = Annotated[
    dict[str, Any],
    AfterValidator(_plain),
    WithJsonSchema(
        {
            "type": "object",
            "description": "The content of a graph file. A formula is true, a step, or an object with all, any or not.",
            "required": ["format", "task", "steps", "preconditions"],
            "additionalProperties": False,
            "properties": {
                "format": {"type": "string", "enum": [FORMAT]},
                "task": {"type": "string"},
                "steps": {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True},
                "preconditions": {"type": "object"},
                "method": {"type": "object"},
                "evidence": {"type": "object"},
            },
        }
    ),
]


class Reading(Model):
    """How a dataset is to be read, where its format leaves that open; as the options of `msg2 describe`."""

    order: Literal["file", "time"] | None = None
    tier: Asked | None = None
    fps: Annotated[float, Field(gt=0, le=100_000)] | None = None


class Upload(Reading):
    """The name of an uploaded file, which never becomes a path, and how it is to be read; in the query."""

    model_config = ConfigDict(strict=False)  # a query is text

    name: FileName


class Row(Model):
    """One labelled step, as a row of a table: `start` and `end` in seconds on every row, or on none."""

    video: Name
    step: Name
    start: Seconds | None = None
    end: Seconds | None = None
    task: Name | None = None
    confidence: Share | None = None
    source: str | None = None


class Options(Model):
    """Options of a method; what is not given has the method's default."""

    delta: Share | Literal["auto"] | None = None
    alpha: Annotated[float, Field(ge=0)] | None = None
    recency: Annotated[float, Field(gt=0, le=1)] | None = None
    max_literals: Annotated[int, Field(ge=1, le=1000), _WHOLE] | Literal["none"] | None = None


class Learning(Model):
    """How a graph is learnt: as the options of `msg2 infer`."""

    task: Annotated[Name | None, Field(description="Which task, where there are several.")] = None
    method: Annotated[str, Field(json_schema_extra={"enum": list(METHODS)})] = DEFAULT.method
    options: Options = Options()
    seed: Annotated[int, Field(ge=0, le=2**53), _WHOLE] = DEFAULT.seed
    samples: Annotated[int, Field(ge=1, le=10_000), _WHOLE] | None = None
    confidence: Share | None = None
    require: list[Pair] = []
    forbid: list[Pair] = []
    repeats: Literal["first", "keep"] | None = None
    overlap: Literal["unordered", "start"] | None = None


class Infer(Learning):
    """POST /api/infer."""

    labels: Annotated[list[Row], Field(min_length=1)]


class Next(Model):
    """POST /api/next."""

    graph: Graph
    done: list[Name] = []
    ranker: Annotated[str, Field(json_schema_extra={"enum": ["recency", "grprop"]})] = NextStepOptions().ranker


class Check(Model):
    """POST /api/check."""

    graph: Graph
    labels: Annotated[list[Row], Field(min_length=1)]


class Drawing(Model):
    """A graph to be laid out, or to be kept; `replaces` a drawn one that is kept already."""

    graph: Graph
    replaces: Id | None = None


class Merge(Model):
    """Graphs of the same steps to be merged by majority per clause: what is kept under these names."""

    work: Annotated[list[Id], Field(min_length=2, max_length=100)]


class Job(Learning):
    """A graph to be learnt from a dataset."""

    data: Id


class Correction(Model):
    """All labels of one video, as they should be."""

    task: Name
    video: Name
    labels: list[Row]
