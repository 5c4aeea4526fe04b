"""The graph file `msg2.graph/2` as one model: it checks files, and the JSON Schema and the API's schema come from it.

`SubtaskGraph` checks what no schema can say: every name is a step, and preconditions and order form no cycle.
The package has the schema as `schema.json`; tests/graph/test_schema.py says how to write it again.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, RootModel, SkipValidation, ValidationError

from msg2.errors import InputError, require
from msg2.graph.evidence import EdgeKind, StepEvidence
from msg2.graph.formula import Formula
from msg2.text import name_fault, short_repr

FORMAT = "msg2.graph/2"
OLD_FORMAT = "msg2.graph/1"
"""Files of this format have preconditions only; they are read as such."""
_NO_STEP_NAME = "is not a step name"
_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a key of a graph file",
    "model_type": "is not a JSON object",
    "string_type": "is not a text",
    "list_type": "is not a list",
    "dict_type": "is not an object",
    "too_short": "has fewer than {min_length} steps",
    "too_long": "has more than {max_length} steps",
    **dict.fromkeys(("float_type", "greater_than_equal", "less_than_equal"), "is not a share from 0 to 1"),
}
"""What is wrong with a value, by pydantic's type of the error."""


def _check_step_name(name: str) -> str:
    require(not name_fault(name), _NO_STEP_NAME)
    return name


def _check_distinct(names: list[str]) -> list[str]:
    for name in names if len(set(names)) < len(names) else ():
        require(names.count(name) <= 1, f"{short_repr(name)} is there twice")
    return names


StepName: TypeAlias = Annotated[str, AfterValidator(_check_step_name), Field(json_schema_extra={"minLength": 1})]
StepNames: TypeAlias = Annotated[list[StepName], FailFast()]
DistinctSteps: TypeAlias = Annotated[
    StepNames, AfterValidator(_check_distinct), Field(json_schema_extra={"uniqueItems": True})
]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
_TEXTS = ("descriptions", "warnings", "tools", "version", "reviewed")
_NEW_KEYS = ("order", "exclusive", "optional", "repeats", "rules", "responses", "loops", *_TEXTS)  # not in old files


class _PartOfFile(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)


class AllOf(_PartOfFile):
    """All of these hold."""

    all: Annotated[list[FormulaValue], Field(min_length=1)]


class AnyOf(_PartOfFile):
    """At least one of these holds."""

    any: Annotated[list[FormulaValue], Field(min_length=1)]


class Not(_PartOfFile):
    """This does not hold."""

    formula: FormulaValue = Field(alias="not")


class FormulaValue(RootModel[Literal[True] | StepName | AllOf | AnyOf | Not]):
    """A condition on the steps that are completed: true (always satisfied), a step, or made of other formulas."""


class StatedRule(_PartOfFile):
    """What a person stated: certain, whatever the recordings do."""

    before: StepName
    """The step that comes first."""
    after: StepName
    """The step that comes later."""
    kind: EdgeKind = "needs"
    """"needs": `after` cannot be done without `before`. "after": where both are done, `before` comes first."""
    by: str | None = None
    """Who said so."""
    on: str | None = None
    """When, as a date."""


class Loop(_PartOfFile):
    """Steps that many runs do again, all of them or most."""

    steps: Annotated[DistinctSteps, Field(min_length=1)]
    """The steps that are done again, in their order."""
    back: DistinctSteps = []
    """Steps that lead back: they are only done between the last of these steps and the first one, done again."""
    share: Share
    """The share of the runs with these steps that do them again."""


class Caution(_PartOfFile):
    """Something to be careful about."""

    text: str
    step: StepName | None = None
    """Where it belongs to one step."""


class Review(_PartOfFile):
    """Who has checked a procedure, and when."""

    by: str
    on: str | None = None
    """A date."""


class ProcedureTexts(_PartOfFile):
    """What a written procedure says beyond the graph."""

    descriptions: dict[str, str] = {}
    """Step: one sentence that says what to do."""
    warnings: Annotated[list[Caution], FailFast()] = []
    """What to be careful about, of the whole procedure or of a step."""
    tools: list[str] = []
    """What is needed to do it."""
    version: str | None = None
    """Of the procedure."""
    reviewed: Review | None = None
    """Who has checked it; a draft that nobody has checked does not have it."""

    def of_steps(self, steps: Container[str]) -> ProcedureTexts:
        """The same texts without those of other steps."""
        cautions = [caution for caution in self.warnings if caution.step is None or caution.step in steps]
        descriptions = {name: text for name, text in self.descriptions.items() if name in steps}
        return self.model_copy(update={"descriptions": descriptions, "warnings": cautions})


NO_TEXTS = ProcedureTexts()


class GraphFileContent(ProcedureTexts):
    """A subtask graph: the steps of a task, what each of them needs, and how else they are related.

    Beyond what this schema can say: every name in preconditions (as a key or inside a formula), order, exclusive,
    optional, repeats, rules, responses, loops and the texts is in steps; and preconditions and order together form no
    cycle. A file of the format msg2.graph/1 has preconditions only and is read as one without the rest. Versions: the
    number after the slash in format grows when a file of the new kind could be misread by a program that knows the old
    one; keys inside method and evidence may be added without a new number, and readers keep those they do not know.
    """

    model_config = ConfigDict(
        title="msg2 graph file, format msg2.graph/2",
        json_schema_extra={
            "if": {"properties": {"format": {"const": "msg2.graph/1"}}},
            "then": {"properties": dict.fromkeys(_NEW_KEYS, False)},
        },
    )

    format: Literal["msg2.graph/2", "msg2.graph/1"]
    task: str
    """The name of the task, verbatim."""
    steps: DistinctSteps
    """The names of the steps, verbatim; msg2 writes them sorted by layer, then name."""
    preconditions: dict[str, Formula]
    """What a step needs. Step: formula. A step that is absent needs nothing."""
    order: Annotated[list[Annotated[DistinctSteps, Field(min_length=2, max_length=2)]], FailFast()] = []
    """After, if done. [a, b]: where a run does both, a comes first; b does not need a."""
    exclusive: Annotated[list[Annotated[DistinctSteps, Field(min_length=2)]], FailFast()] = []
    """Groups of steps of which a run does at most one."""
    optional: StepNames = []
    """Steps that a faultless run may leave out."""
    repeats: dict[str, Share] = {}
    """Step: the share of the runs with this step that do it again."""
    rules: Annotated[list[StatedRule], FailFast()] = []
    """What a person stated about the order of two steps: to break such a rule is a mistake, whatever recordings do."""
    responses: Annotated[list[Annotated[tuple[StepName, Formula], Field(strict=False)]], FailFast()] = []
    """What must follow. [a, F]: once a was done, a step F is done sooner or later, or one of several ({"any": […]})."""
    loops: Annotated[list[Loop], FailFast()] = []
    """Parts that are done again."""
    method: dict[str, object] = {}
    """How the graph was learned: name, options, and the ids of the videos. Other keys are kept."""
    evidence: dict[str, SkipValidation[StepEvidence | object]] = {}
    """Step: what the videos say about its precondition. What is not as described is kept, and not used."""

    @property
    def texts(self) -> ProcedureTexts:
        """What a written procedure says."""
        return ProcedureTexts(**{key: getattr(self, key) for key in _TEXTS})


def read_graph_file(value: object) -> GraphFileContent:
    """Check the content of a graph file; `InputError` with the place and the first thing that is wrong."""
    try:
        file = GraphFileContent.model_validate(value)
    except ValidationError as error:
        raise _explain(error) from None
    for key in _NEW_KEYS:
        if file.format == OLD_FORMAT and key in file.model_fields_set:
            hint = f"only files of the format '{FORMAT}' have it"
            raise InputError("is not a key of a graph file", where=key, hint=hint)
    return file


def _explain(invalid: ValidationError) -> InputError:
    """Say in our words what pydantic complains about first, and where: which list or which step."""
    error = invalid.errors(include_url=False)[0]
    key, *inside = error["loc"] or [""]
    where = f"{key} of '{inside[0]}'" if inside and isinstance(inside[0], str) else str(key)
    if inside and isinstance(inside[0], int):
        where = f"{key}, entry {inside[0] + 1}"
    context = error.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, InputError):
        return InputError(cause.what, where=where, hint=cause.hint)
    what = _WORDS.get(error["type"], error["msg"]).format(**context)
    if inside and error["type"] == "string_type":
        what = _NO_STEP_NAME
    if key == "format":
        wrong = what if error["type"] == "missing" else f"is {short_repr(str(error['input']))}"
        what = f"{wrong}, this version of msg2 reads '{FORMAT}' and '{OLD_FORMAT}'"
    return InputError(what, where=where or None)
