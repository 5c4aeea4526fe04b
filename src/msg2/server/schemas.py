"""Requests, responses and stored records as types: the schema of the JSON API and of the files `record.json`.

Nothing that does not fit gets in. The options of the methods are not written here: their schema is generated from the
dataclass of each method, see `msg2.options`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from msg2.assist import GRAPH_RANKERS
from msg2.graph.graph import FORMAT, OLD_FORMAT
from msg2.inference import DEFAULT_METHOD, METHODS, find_method, make_options
from msg2.options import option_specs


class StrictModel(BaseModel):
    """Nothing is guessed: a number is no text, and a key that is not known is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


# -- values -----------------------------------------------------------------------------------------------------


def _require_storable(value: Any) -> Any:
    """Refuse what no JSON file can hold: halves of characters, numbers that are too large."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("has a number or a character that no file can hold, or is nested too deeply") from None
    return value


def _integer_from_float(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is as whole as 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _list_methods(schema: dict[str, Any]) -> None:
    """Name the methods that are registered when the schema is asked for."""
    schema["enum"] = list(METHODS)


def _list_method_options(schema: dict[str, Any]) -> None:
    """Describe the options of every method that is registered when the schema is asked for."""
    schema.pop("additionalProperties", None)
    schema["description"] = "Options of the method; what is not given, or null, has the method's default."
    schema["anyOf"] = [
        {
            "title": f"Options of the method {name}",
            "type": "object",
            "additionalProperties": False,
            "properties": {spec.name: spec.json_schema() for spec in option_specs(method.options)},
        }
        for name, method in METHODS.items()
    ]


_INTEGER = BeforeValidator(_integer_from_float)
RecordId: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="32 hexadecimal digits.")]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=100_000)]
FileName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
QueryText: TypeAlias = Annotated[str, Field(min_length=1, max_length=2000)]
"""A name in an address, which cannot be of any length."""
ConstraintPair: TypeAlias = Annotated[list[Name], Field(min_length=2, max_length=2, description="[before, after]")]
Seconds: TypeAlias = Annotated[float, Field(ge=0)]
Probability: TypeAlias = Annotated[float, Field(ge=0, le=1)]
OptionValues: TypeAlias = Annotated[
    dict[str, Any], AfterValidator(_require_storable), Field(json_schema_extra=_list_method_options)
]
_STEP_LIST: dict[str, Any] = {"type": "array", "items": {"type": "string", "minLength": 1}}
GraphDocument: TypeAlias = Annotated[
    dict[str, Any],
    AfterValidator(_require_storable),
    WithJsonSchema(
        {
            "type": "object",
            "description": "The content of a graph file. A formula is true, a step, or an object with all, any or not. "
            "order has pairs [a, b]: where a run does both, a comes first; of the steps of a list in exclusive, a run "
            "does at most one; optional ones may be left out; repeats has the share of runs that do a step again.",
            "required": ["format", "task", "steps", "preconditions"],
            "additionalProperties": False,
            "properties": {
                "format": {"type": "string", "enum": [FORMAT, OLD_FORMAT]},
                "task": {"type": "string"},
                "steps": {**_STEP_LIST, "uniqueItems": True},
                "preconditions": {"type": "object"},
                "order": {"type": "array", "items": {**_STEP_LIST, "minItems": 2, "maxItems": 2}},
                "exclusive": {"type": "array", "items": {**_STEP_LIST, "minItems": 2}},
                "optional": _STEP_LIST,
                "repeats": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1}},
                "method": {"type": "object"},
                "evidence": {"type": "object"},
            },
        }
    ),
]


# -- requests ---------------------------------------------------------------------------------------------------


class ReadSettings(StrictModel):
    """How a dataset is to be read, where its format leaves that open; as the options of `msg2 describe`."""

    order: Literal["file", "time"] | None = None
    tier: QueryText | None = None
    fps: Annotated[float, Field(gt=0, le=100_000)] | None = None


class UploadQuery(ReadSettings):
    """The name of an uploaded file, which never becomes a path, and how it is to be read; in the query."""

    model_config = ConfigDict(strict=False)  # a query is text

    name: FileName


class LabelRow(StrictModel):
    """One labelled step, as a row of a table: `start` and `end` in seconds on every row, or on none."""

    video: Name
    step: Name
    start: Seconds | None = None
    end: Seconds | None = None
    task: Name | None = None
    confidence: Probability | None = None
    source: str | None = None


class LearnSettings(StrictModel):
    """How a graph is learned: as the options of `msg2 infer`."""

    task: Annotated[Name | None, Field(description="Which task, where there are several.")] = None
    method: Annotated[str, Field(json_schema_extra=_list_methods)] = DEFAULT_METHOD
    options: OptionValues = {}
    seed: Annotated[int, Field(ge=0, le=2**53), _INTEGER] = 0
    samples: Annotated[int, Field(ge=1, le=10_000), _INTEGER] | None = None
    confidence: Probability | None = None
    require: Annotated[list[ConstraintPair], Field(description="The second step needs the first.")] = []
    forbid: Annotated[list[ConstraintPair], Field(description="The second step does not need the first.")] = []
    require_order: Annotated[
        list[ConstraintPair], Field(description="Where both are done, the first step comes first.")
    ] = []
    forbid_order: Annotated[list[ConstraintPair], Field(description="The first step need not come first.")] = []
    repeats: Literal["first", "keep"] | None = None
    overlap: Literal["unordered", "start"] | None = None

    def parse_options(self) -> dict[str, Any]:
        """Turn the options into values that the method takes; `InputError` where it does not take them."""
        specs = {spec.name: spec for spec in option_specs(find_method(self.method).options)}
        given = {name: value for name, value in self.options.items() if value is not None}
        values = {name: specs[name].from_json(value) if name in specs else value for name, value in given.items()}
        make_options(self.method, values)
        return values


class InferRequest(LearnSettings):
    """POST /api/infer."""

    labels: Annotated[list[LabelRow], Field(min_length=1)]


class JobRequest(LearnSettings):
    """POST /api/work: a graph to be learned from a dataset."""

    data: RecordId


class NextStepsRequest(StrictModel):
    """POST /api/next."""

    graph: GraphDocument
    done: list[Name] = []
    ranker: Annotated[str, Field(json_schema_extra={"enum": list(GRAPH_RANKERS)})] = "recency"


class CheckRequest(StrictModel):
    """POST /api/check."""

    graph: GraphDocument
    labels: Annotated[list[LabelRow], Field(min_length=1)]


class DrawRequest(StrictModel):
    """A graph to be laid out, or to be kept; `replaces` a drawn one that is kept already."""

    graph: GraphDocument
    replaces: RecordId | None = None


class MergeRequest(StrictModel):
    """Graphs of the same steps to be merged by majority: what is kept under these names."""

    work: Annotated[list[RecordId], Field(min_length=2, max_length=100)]


class CorrectionRequest(StrictModel):
    """All labels of one video, as they should be."""

    task: Name
    video: Name
    labels: list[LabelRow]


# -- responses --------------------------------------------------------------------------------------------------


class ErrorResponse(StrictModel):
    """Every answer that is no success: what is wrong, where, and what to do about it."""

    error: str
    where: str | None = None
    hint: str | None = None


class NextStepEntry(StrictModel):
    """A step that is left, with the clauses that do not hold yet (formulas as in a graph file)."""

    step: str
    probability: Probability
    eligible: bool
    unmet: list[Any]


class NextStepsResponse(StrictModel):
    """The steps that are left, the most probable first."""

    steps: list[NextStepEntry]


class DrawResponse(StrictModel):
    """A graph that has been laid out: the SVG, and the graph with its steps in order."""

    svg: str
    graph: dict[str, Any]


class VideoLabels(StrictModel):
    """The labels of one video, in order."""

    video: str
    labels: list[LabelRow]


class TaskLabelsResponse(StrictModel):
    """The labels of a task, every one of them, video by video."""

    task: str
    steps: list[str]
    videos: list[VideoLabels]


class OptionDescription(StrictModel):
    """An option of a method, as a form needs it; `choices` are words that are values, `default` is as one types it."""

    name: str
    kind: str
    choices: list[str]
    default: str
    help: str


class MethodDescription(StrictModel):
    """A method in one line, and all of its options."""

    summary: str
    options: list[OptionDescription]


class ChoicesResponse(StrictModel):
    """What there is to choose from: methods (`methods` has the default of each option only), and formats."""

    methods: dict[str, dict[str, Any]]
    method_options: dict[str, MethodDescription]
    default: str
    graph_formats: list[str]
    label_formats: list[str]


# -- records, which are stored and answered alike ---------------------------------------------------------------


class TaskEntry(StrictModel):
    """A task of a dataset."""

    name: str
    videos: int
    steps: list[str]


class DatasetRecord(StrictModel):
    """Data that graphs can be learned from. `path` where it lies outside the folder, `corrects` what it improves on."""

    id: RecordId
    made: float
    name: str
    format: str
    tasks: list[TaskEntry]
    reading: ReadSettings = ReadSettings()
    remarks: list[str] = Field(default_factory=list)
    path: str | None = None
    corrects: RecordId | None = None

    @property
    def title(self) -> str:
        """The name without its suffix: what a task is called that has no name of its own."""
        return Path(self.name).stem or self.name


class ClauseVote(StrictModel):
    """What is said of a step, which (from 0) of how many graphs say so, and what became of it.

    By `kind`, the step needs the clause, comes after it or excludes it; or it is optional, and the clause is true.
    """

    step: str
    clause: Any
    voters: list[int]
    of: int
    outcome: Literal["kept", "dropped", "tie", "contradiction"]
    kind: Literal["needs", "after", "exclusive", "optional"] = "needs"


class GraphRecord(StrictModel):
    """A graph that is kept, or the job that is to make it.

    Of a running job, `news` says what it is doing, `done` how many units of that are done, and `total` of how many.
    """

    id: RecordId
    made: float
    kind: Literal["learnt", "given", "drawn", "merged"]
    state: Literal["waiting", "running", "done", "failed"]
    task: str = ""
    name: str = ""
    job: JobRequest | None = None
    attempts: int = 0
    steps: list[str] = Field(default_factory=list)
    edges: int = 0
    videos: int = 0
    annotators: list[str] = Field(default_factory=list)
    votes: list[ClauseVote] = Field(default_factory=list)
    remarks: list[str] = Field(default_factory=list)
    problem: ErrorResponse | None = None
    news: str | None = None
    done: int | None = None
    total: int | None = None


class DatasetsResponse(StrictModel):
    """All datasets, the newest first."""

    data: list[DatasetRecord]


class GraphsResponse(StrictModel):
    """All graphs and jobs, the newest first."""

    work: list[GraphRecord]
