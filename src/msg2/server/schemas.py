"""Requests, responses and stored records as types: the schema of the JSON API and of the files `record.json`."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, Union

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, with_config
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from msg2.assist import RANKERS, MissingStep, NextStep, Observation, Plan, RunEnd, StepReport, TimeLeft
from msg2.assist.events import EVENTS, Alarm
from msg2.assist.time_left import WaitingTime
from msg2.errors import InputError
from msg2.formats.graph_reader import MAX_DEPTH, has_level
from msg2.graph.graph_file import GraphFileContent, ProcedureTexts
from msg2.inference import METHODS, Constraints
from msg2.inference.merging import VoteKind, VoteOutcome
from msg2.inference.registry import DEFAULT_METHOD, make_options
from msg2.labelling.video_selection import VideoChoice
from msg2.options import WHOLE, Count, NonNegative, Probability, option_specs
from msg2.server.sandbox import JsonObject
from msg2.task import Absent


class StrictModel(BaseModel):
    """Nothing is guessed: a number is no text, and a key that is not known is refused."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


_MAX_PLANS = 100


def _require_storable(value: JsonObject) -> JsonObject:
    """Refuse what no JSON file can hold: halves of characters, numbers that are too large, endless nesting."""
    if has_level(value, MAX_DEPTH):
        raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise ValueError("has a number or a character that no file can hold") from None
    except TypeError:  # a body that does not say that it is JSON comes as bytes
        raise ValueError("is no JSON, or not said to be") from None
    return value


def _limit_plans(event: JsonObject) -> JsonObject:
    """Refuse the question for more plans than anybody reads, each of which takes time."""
    k = event.get("k")
    if isinstance(k, int | float) and k > _MAX_PLANS:
        raise ValueError(f"k is more than {_MAX_PLANS}")
    return event


def _list_method_options(schema: JsonObject) -> None:
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


ID_PATTERN = "^[0-9a-f]{32}$"
RecordId: TypeAlias = Annotated[str, Field(pattern=ID_PATTERN, description="32 hexadecimal digits.")]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=100_000)]
PersonName: TypeAlias = Annotated[str, Field(min_length=1, max_length=100, description="Whose labels they are.")]
FileName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
QueryText: TypeAlias = Annotated[str, Field(min_length=1, max_length=2000)]
"""A name in an address, which cannot be of any length."""
ConstraintPair: TypeAlias = Annotated[list[Name], Field(min_length=2, max_length=2, description="[before, after]")]
OptionValues: TypeAlias = Annotated[
    JsonObject, AfterValidator(_require_storable), Field(json_schema_extra=_list_method_options)
]
GraphDocument: TypeAlias = Annotated[
    JsonObject, BeforeValidator(_require_storable, json_schema_input_type=GraphFileContent)
]
"""The content of a graph file, as it was sent: whoever uses the graph reads it, in a process of its own."""


class ReadSettings(StrictModel):
    """How a dataset is to be read, where its format leaves that open; as the options of `msg2 describe`."""

    order: Literal["file", "time"] | None = None
    tier: QueryText | None = None
    fps: Annotated[float, Field(gt=0, le=100_000)] | None = None
    columns: QueryText | None = None


class UploadQuery(ReadSettings):
    """The name of an uploaded file, which never becomes a path, and how it is to be read; in the query."""

    model_config = ConfigDict(strict=False)  # a query is text

    name: FileName


class LabelRow(StrictModel):
    """One labelled step, as a row of a table: `start` and `end` in seconds on every row, or on none."""

    video: Name
    step: Name
    start: NonNegative | None = None
    end: NonNegative | None = None
    task: Name | None = None
    confidence: Probability | None = None
    source: str | None = None


class LearnSettings(StrictModel):
    """How a graph is learned: as the options of `msg2 infer`."""

    task: Name | None = None
    """Which task, where there are several."""
    method: Annotated[str, Field(json_schema_extra=lambda schema: schema.update(enum=list(METHODS)))] = DEFAULT_METHOD
    options: OptionValues = {}
    seed: Annotated[int, Field(ge=0, le=2**53), WHOLE] = 0
    samples: Annotated[int, Field(ge=1, le=10_000), WHOLE] | None = None
    confidence: Probability | None = None
    require: list[ConstraintPair] = []
    """The second step needs the first."""
    forbid: list[ConstraintPair] = []
    """The second step does not need the first."""
    require_order: list[ConstraintPair] = []
    """If both are done, the first comes first."""
    forbid_order: list[ConstraintPair] = []
    """The first step need not come first."""
    repeats: Literal["first", "keep"] | None = None
    overlap: Literal["unordered", "start"] | None = None
    ties: Literal["unknown", "file"] | None = None
    draft_confidence: Probability | None = None
    """Drafts count from this confidence on."""

    def arguments(self) -> dict[str, Any]:
        """Return what `msg2.infer` takes besides the data; `InputError` where something of it cannot be used."""
        options = {name: value for name, value in self.options.items() if value is not None}
        make_options(self.method, options)
        shared = self.model_dump(include={"method", "seed", "samples", "confidence"})
        return {**options, **shared, "constraints": self._constraints()}

    def reading(self) -> dict[str, str | float]:
        """Return the options of reading the data that are given."""
        return self.model_dump(include={"repeats", "overlap", "ties", "draft_confidence"}, exclude_none=True)

    def _constraints(self) -> Constraints:
        """Return the rules as constraints; an error names those that contradict each other in sentences."""
        rules = [(kind, before, after) for kind in RELATIONS for before, after in getattr(self, kind)]
        try:
            return _make_constraints(rules)
        except InputError:
            for rule in list(rules):  # a rule is not to blame if the others contradict each other without it
                with suppress(InputError):
                    _make_constraints([other for other in rules if other != rule])
                    continue
                rules.remove(rule)
            said = " and ".join(f"“{before} {RELATIONS[kind]} {after}”" for kind, before, after in rules)
            what = f"these contradict each other: {said}" if len(rules) > 1 else f"{said} speaks of one step only"
            raise InputError(what, hint="remove one of them") from None


RELATIONS = {
    "require": "is needed for",
    "require_order": "(if done) comes before",
    "forbid": "is not needed for",
    "forbid_order": "need not come before",
}
"""The rules that people know, by the field of `LearnSettings`, as they are said."""


def _make_constraints(rules: list[tuple[str, str, str]]) -> Constraints:
    pairs = {kind: [(before, after) for rule, before, after in rules if rule == kind] for kind in RELATIONS}
    order, no_order = pairs["require_order"], pairs["forbid_order"]
    return Constraints(pairs["require"], pairs["forbid"], required_order=order, forbidden_order=no_order)


class InferRequest(LearnSettings):
    """POST /api/infer."""

    labels: Annotated[list[LabelRow], Field(min_length=1)]


class JobRequest(LearnSettings):
    """POST /api/work: a graph to be learned from a dataset; what `replaces` says in words, it says as well."""

    data: RecordId
    replaces: RecordId | None = None


class NextStepsRequest(StrictModel):
    """POST /api/next. The ranker is by default `learned` where there are labels to learn from, else `recency`."""

    graph: GraphDocument
    done: list[Name] = []
    ranker: Annotated[str | None, Field(json_schema_extra={"enum": [*RANKERS, None]})] = None
    labels: list[LabelRow] = []


class CheckRequest(StrictModel):
    """POST /api/check."""

    graph: GraphDocument
    labels: Annotated[list[LabelRow], Field(min_length=1)]


Version: TypeAlias = Annotated[int, Field(ge=0, le=2**53), WHOLE]
"""What a change rests on: how often something has been changed before."""
SaveId: TypeAlias = Annotated[str, Field(max_length=100)]
"""A random name of one save: where the answer was lost and the same is sent again, it changes nothing."""


class DrawRequest(StrictModel):
    """A graph to be laid out, or to be kept; `replaces` a drawn one that is kept, of that `version`."""

    graph: GraphDocument
    replaces: RecordId | None = None
    version: Version | None = None
    save_id: SaveId = ""


class RenameRequest(StrictModel):
    """What a graph is to be called, nothing for the name of its task; where `version` is given, only that version."""

    title: Annotated[str, Field(max_length=200)]
    version: Version | None = None


class CheckDataRequest(StrictModel):
    """Data whose runs are checked against a graph."""

    data: RecordId
    task: Name | None = None


class MergeRequest(StrictModel):
    """Graphs of the same steps to be merged by majority: what is kept under these names."""

    work: Annotated[list[RecordId], Field(min_length=2, max_length=100)]


class PersonRequest(StrictModel):
    """Whose labels of which task."""

    task: Name
    person: PersonName


class SettledDraft(StrictModel):
    """A draft that a person has decided on: it does not come back, even where it is made again at about this time."""

    step: Name
    start: NonNegative | None = None
    end: NonNegative | None = None
    outcome: Literal["accepted", "rejected"]


class SaveLabelsRequest(PersonRequest):
    """All labels of one video by one person; `version` is what they rest on, 0 for a video that is new."""

    video: Name
    version: Version
    labels: list[LabelRow]
    settled: list[SettledDraft] = []
    save_id: SaveId = ""


class AddStepsRequest(StrictModel):
    """Steps that a task has, whether a label has them or not."""

    task: Name
    steps: Annotated[list[Name], Field(min_length=1, max_length=1000)]


class DraftRequest(PersonRequest):
    """Where drafts come from: another dataset, or (without one) the narration, the steps and what is labelled."""

    data: RecordId | None = None


class FillRequest(StrictModel):
    """How labels are filled in: from the names of the steps, in their usual order, or the labels of some videos.

    `labels` is another dataset that has them; left out, those count that the data itself has.
    """

    task: Name | None = None
    steps: Annotated[list[Name], Field(max_length=1000)] = []
    labels: RecordId | None = None


class ErrorResponse(StrictModel):
    """Every answer that is no success: what is wrong, where, and what to do about it."""

    error: str
    where: str | None = None
    hint: str | None = None


class ConflictResponse(ErrorResponse):
    """Somebody else has changed what a change rests on: `current` is what there is now, with its `version`."""

    current: JsonObject


def error_response(error: InputError) -> ErrorResponse:
    """Return the error as it goes over the wire, each part on one line of a sensible length."""
    parts = {"error": error.what, "where": error.where, "hint": error.hint}
    lines = {name: " ".join(text.split())[:1000] for name, text in parts.items() if text is not None}
    return ErrorResponse(**{name: line.encode("utf-8", "backslashreplace").decode() for name, line in lines.items()})


class NextStepEntry(TypedDict):
    """A step that is left, with the clauses that do not hold yet (formulas as in a graph file).

    `probability` is null for rankers that only rank, `seconds` (until the step comes) without labels that have times.
    What is done has `ruled_out_by` the step; `awaited` should come before it, if done at all.
    """

    step: str
    rank: int
    probability: Probability | None
    eligible: bool
    unmet: list[object]
    ruled_out_by: list[str]
    awaited: list[str]
    seconds: WaitingTime | None


class DrawResponse(TypedDict):
    """A graph that has been laid out: the SVG, and the graph with its steps in order."""

    svg: str
    graph: JsonObject


class ArrowEntry(TypedDict):
    """An arrow of a graph: `after` needs `before`, or comes after it, where both are done."""

    before: str
    after: str
    kind: str


class SaveTextsRequest(StrictModel):
    """The texts of a written procedure; `version` is that of the graph that they were read from."""

    version: Version
    texts: ProcedureTexts


class ProcedureEntry(StrictModel):
    """A step of a written procedure: its number, and what else there is to know."""

    label: str
    name: str
    notes: list[str]


class ProcedureResponse(StrictModel):
    """A written procedure: its status, the texts that people can change, and its steps in order.

    Whoever has the `link`, a path of this app, can read the procedure, and nothing else.
    """

    title: str
    status: str
    version: int
    link: str
    texts: ProcedureTexts
    steps: list[ProcedureEntry]


class GraphViewResponse(TypedDict):
    """A graph to look at: its diagram, its steps in order, all rules, what is said of each step, and its arrows."""

    svg: str
    steps: list[str]
    rules: list[str]
    explanations: dict[str, list[str]]
    arrows: list[ArrowEntry]


class TablePreviewResponse(TypedDict):
    """The first rows of a table, and what is found of its columns; `choices` has what they can be, by kind of table.

    `problem` says why that is not enough to read it.
    """

    kind: Literal["steps", "events"]
    header: list[str]
    rows: list[list[str]]
    columns: dict[str, str]
    choices: dict[str, list[str]]
    problem: str | None


class VideoLabels(StrictModel):
    """The labels of one video, in order."""

    video: str
    labels: list[LabelRow]


class TaskLabelsResponse(StrictModel):
    """The labels of a task, every one of them, video by video."""

    task: str
    steps: list[str]
    videos: list[VideoLabels]


class WorkbenchVideo(VideoLabels):
    """A video as one person sees it: the labels, all drafts, and those of them that are settled.

    `own` is whether the person has saved it; if not, the labels are those that came with the data.
    """

    drafts: list[LabelRow]
    settled: list[SettledDraft]
    version: int
    own: bool
    media: bool
    captions: bool


class WorkbenchResponse(StrictModel):
    """All that one person sees of a task."""

    task: str
    steps: list[str]
    people: list[str]
    videos: list[WorkbenchVideo]


class CaptionEntry(TypedDict):
    """A caption with the times of its words, as exact as the file has them: [text, start, end]."""

    text: str
    start: float
    end: float
    words: list[tuple[str, float, float]]


class StabilityPoint(TypedDict):
    """How much the graph moved with so many labelled videos."""

    videos: int
    movement: float


class LiveGraphResponse(StrictModel):
    """The graph of the labels so far: `changes` in words, whether it is `enough`, and the videos to label next."""

    svg: str | None
    videos: int
    labels: int
    changes: str
    movement: float | None
    enough: bool
    sentence: str
    trend: list[StabilityPoint]
    next: list[VideoChoice]


class OptionDescription(TypedDict):
    """An option of a method, as a form needs it; `choices` are words that are values, `default` is as one types it."""

    name: str
    kind: str
    choices: list[str]
    default: str
    help: str


class MethodDescription(TypedDict):
    """A method in one line, and all of its options."""

    summary: str
    options: list[OptionDescription]


class ChoicesResponse(TypedDict):
    """What there is to choose from: methods (`methods` has the default of each option only), and formats."""

    methods: dict[str, JsonObject]
    method_options: dict[str, MethodDescription]
    default: str
    graph_formats: list[str]
    label_formats: list[str]
    relations: dict[str, str]


Unit: TypeAlias = Literal["video", "run"]
"""What the data have many of: videos, or runs in a log."""


class TaskEntry(StrictModel):
    """A task of a dataset, with what looks wrong in it."""

    name: str
    videos: int
    steps: list[str]
    unit: Unit = "video"
    findings: list[str] = Field(default_factory=list)


class DatasetRecord(StrictModel):
    """Data that graphs can be learned from. `path` where it lies outside the folder, `corrects` what it improves on.

    `media` is whether it is a folder with videos or captions in it; its tasks may have no labels yet. `columns` says of
    a table which of its columns is which. For a graph, drafts are to count from `draft_confidence` on.
    """

    id: RecordId
    made: float
    name: str
    format: str
    tasks: list[TaskEntry]
    reading: ReadSettings = ReadSettings()
    remarks: list[str] = Field(default_factory=list)
    path: str | None = None
    corrects: RecordId | None = None
    media: bool = False
    columns: dict[str, str] = Field(default_factory=dict)
    draft_confidence: Probability | None = None

    @property
    def title(self) -> str:
        """The name without its suffix: what a task is called that has no name of its own."""
        return Path(self.name).stem or self.name


class ClauseVote(StrictModel):
    """What is said of a step, which (from 0) of how many graphs say so, and what became of it.

    By `kind`, the step needs the clause, comes after it or excludes it; or it is optional, and the clause is true.
    """

    step: str
    clause: object
    voters: list[int]
    of: int
    outcome: VoteOutcome
    kind: VoteKind = "needs"


class GraphRecord(StrictModel):
    """A graph that is kept, or the job that is to make it; `title` is what somebody called it.

    Of a running job, `news` says what it is doing, `done` how many units of that are done, and `total` of how many.
    """

    id: RecordId
    made: float
    kind: Literal["learnt", "given", "drawn", "merged"]
    state: Literal["waiting", "running", "done", "failed"]
    title: str = ""
    task: str = ""
    name: str = ""
    unit: Unit = "video"
    job: JobRequest | None = None
    attempts: int = 0
    version: int = 0
    save_id: str = ""
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


_FIELD_TYPES: dict[str, Any] = {
    "the name of a step": str, "a text": str, "an object from steps to probabilities": dict[str, Probability],
    "a number": float | None, "a whole number": Count | None, "true": Literal[True],
    "true or a text": Literal[True] | str, "true or false": bool,
    "k": Annotated[int, Field(ge=1, le=_MAX_PLANS)] | None,
}  # fmt: skip
"""What an event may have, by the words for it in `EVENTS`; and the number of plans that are asked for."""


def _event_type(kind: str, corrected: str = "") -> type:
    """The schema of a kind of events; one that corrects another has either `did` or `saw`."""
    fields, description = EVENTS[kind]
    always = {kind, corrected, "at" if kind == "observe" else kind}
    known_fields = {key: demands[0] for key, demands in fields.items() if not corrected or key in always}
    types = {key: _FIELD_TYPES["k" if key == "k" else demand] for key, demand in known_fields.items()}
    described = {key: known if key in always else NotRequired[known] for key, known in types.items()}
    event_type = TypedDict(f"{kind.title()}{corrected.title()}Event", described)  # type: ignore[misc]
    event_type.__doc__ = description
    return with_config(extra="forbid")(event_type)


_EVENT_TYPES = [_event_type("correct", "did"), _event_type("correct", "saw"), *map(_event_type, [*EVENTS][1:])]
_AnyEvent: TypeAlias = Union[tuple(_EVENT_TYPES)]  # type: ignore[valid-type]  # noqa: UP007
RunEvent: TypeAlias = Annotated[
    JsonObject, AfterValidator(_limit_plans), BeforeValidator(_require_storable, json_schema_input_type=_AnyEvent)
]
"""What happened, or a question; `msg2.assist.events` says in a sentence what is wrong with it."""


class _AsSent:
    """Describes a dataclass as its `to_json` writes it: every field, and properties of these names, which are texts."""

    def __init__(self, *properties: str) -> None:
        self._properties = properties

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        described = handler.resolve_ref_schema(schema)
        described["properties"] |= {name: {"type": "string"} for name in self._properties}
        described["required"] = list(described["properties"])
        return schema


LogEntry: TypeAlias = Annotated[Observation, _AsSent()]


# Answers are sent as `msg2.assist.events.answer_event` gives them; what follows is their schema.
class RunAnswer(TypedDict):
    """What is known after an event: `report` of what was told, `plans` if they were asked for, and the rest always.

    `last` is the event that was told last, `version` how often the run has changed, and `graph` is there where another
    graph has taken over.
    """

    report: NotRequired[StepReport | None]
    plans: NotRequired[list[Annotated[Plan, _AsSent("reason")]]]
    alarms: list[Alarm]
    done: dict[str, Probability]
    inferred: dict[str, Probability]
    progress: list[str]
    next: list[NextStep]
    missing: list[MissingStep]
    time_left: Annotated[TimeLeft, _AsSent("reason")] | None
    finished: RunEnd
    last: LogEntry | None
    version: int
    graph: NotRequired[RecordId]


class AssistantOptions(StrictModel):
    """What `msg2.Assistant` takes; null is its default."""

    absent: Absent | None = None
    """What nobody told was not done (skipped, the default), or may have been (unknown)."""
    threshold: Probability | None = None
    """The probability of a mistake from which on there is an alarm."""
    alarm_cost: Annotated[float, Field(gt=0)] | None = None
    """What a false alarm costs, where a missed mistake costs 1: sets the threshold."""
    missed: Annotated[float, Field(ge=0, lt=1)] | None = None
    """How often the recogniser misses a step; by default estimated."""
    confusion: Annotated[
        dict[str, dict[str, NonNegative]] | None,
        Field(examples=[{"whisk": {"whisk": 90, "dip": 6, "": 4}, "dip": {"dip": 80, "": 20}}]),
    ] = None
    """How often (counts or shares) the recogniser reports each step, the inner key, where another is done, the outer
    key. The inner key "" is for nothing reported, the outer one for nothing done."""
    window: NonNegative | None = None
    """Seconds by which an event may come late; by default 30."""

    def __hash__(self) -> int:  # a dictionary has none
        return hash(self.model_dump_json())


class TakeOverRequest(StrictModel):
    """The graph that is to go on with a run."""

    graph: RecordId
    data: RecordId | None = None
    """To learn from; null for none. Left out, it is what the graph was learned from, or else what the run has learned
    from, if anything."""


class OpenRunRequest(AssistantOptions):
    """POST /api/runs."""

    graph: RecordId
    data: RecordId | None = None
    """To learn from; null for none. Left out, it is what the graph was learned from, if any."""


class RunFields(StrictModel):
    """A live run. `limitations` says what cannot be answered and why, `version` is how often the run has changed."""

    id: RecordId
    made: float
    graph: RecordId
    data: RecordId | None = None
    task: str
    steps: list[str]
    limitations: dict[str, str] = Field(default_factory=dict)
    options: AssistantOptions = AssistantOptions()
    version: int = 0


class RunSummary(RunFields):
    """A live run, and how many things were told."""

    events: int


class RunResponse(RunSummary):
    """A live run with the present answer, and everything that was told."""

    answer: RunAnswer
    log: list[LogEntry]


class TakeOverResponse(RunResponse):
    """A run that goes on with another graph, and what was told of steps that this one does not have."""

    dropped: list[LogEntry]


class RunRecord(RunFields):
    """A live run as it is kept: `saved` is what `msg2.Assistant` saves of it."""

    saved: JsonObject

    @property
    def events(self) -> int:
        """How many things were told."""
        events = self.saved.get("events")
        return len(events) if isinstance(events, list) else 0
