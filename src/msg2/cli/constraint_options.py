"""What the user knows beforehand: `--require "A<B"`, `--forbid "A<<B"`, and a file of such relations."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from msg2.errors import InputError
from msg2.formats.source import Source
from msg2.inference.constraints import Constraints, StepPair
from msg2.sequences import Sequences
from msg2.task import Task
from msg2.text import short_repr

_KINDS = {
    "require": "required", "required": "required", "forbid": "forbidden", "forbidden": "forbidden",
    "require-order": "required_order", "forbid-order": "forbidden_order",
}  # fmt: skip
_SIGNS = {"<<": "_order", "<": ""}
"""Between two steps, and what it adds to the kind of the constraint; the longer one is tried first."""
_FORM = (
    "a row is kind,before,after or kind,before,after,weight, and kind is require, forbid, require-order or forbid-order"
)


def read_constraints(
    require: Sequence[str] | None, forbid: Sequence[str] | None, file: Path | None, tasks: Sequence[Task | Sequences]
) -> Constraints:
    """Collect all constraints that were given; each is about steps of one of the tasks at least."""
    pairs: dict[str, list[StepPair]] = {kind: [] for kind in _KINDS.values()}
    for option, kind, texts in (("--require", "required", require), ("--forbid", "forbidden", forbid)):
        for text in texts or ():
            sign, pair = _parse_pair(text, option, tasks)
            pairs[kind + _SIGNS[sign]].append(pair)
    hints: dict[StepPair, int] = {}
    for kind, before, after, weight, where in () if file is None else _read_relations(Source.at(file)):
        _require_known_steps(before, after, tasks, where)
        if weight is None:
            pairs[kind].append((before, after))
        else:
            shown = (before, after) if kind.startswith("required") else (after, before)
            hints[shown] = hints.get(shown, 0) + weight
    return Constraints(hints=[(*pair, weight) for pair, weight in hints.items()], **pairs)


def _parse_pair(text: str, option: str, tasks: Sequence[Task | Sequences]) -> tuple[str, StepPair]:
    """The sign and the two steps of "A<<B" or "A<B".

    A "<" in a name is no matter where only one way to split the text gives two steps.
    """
    readings = {sign: _splits(text, sign) for sign in _SIGNS if sign in text}
    if not readings:
        raise typer.BadParameter(f"{option} is {text!r}, it must be two steps with a '<' or '<<' in between")
    for sign, splits in readings.items():
        fitting = [pair for pair in splits if any(set(pair) <= set(task.steps) for task in tasks)]
        if len(fitting) > 1:
            hint = "write it into a file, see --knowledge"
            raise InputError(f"{option} {short_repr(text)} can be read in {len(fitting)} ways", hint=hint)
        if fitting:
            return sign, fitting[0]
    sign, splits = next(iter(readings.items()))
    before, after = (side.strip() for side in splits[0])
    _require_known_steps(before, after, tasks, f"{option} {short_repr(text)}")  # it says what is wrong
    return sign, (before, after)


def _splits(text: str, sign: str) -> list[StepPair]:
    """The two sides of every place where the sign stands, as they are and without space around them."""
    places = [place for place in range(len(text)) if text.startswith(sign, place)]
    sides = [(text[:place], text[place + len(sign) :]) for place in places]
    return list(dict.fromkeys([*sides, *((before.strip(), after.strip()) for before, after in sides)]))


def _require_known_steps(before: str, after: str, tasks: Sequence[Task | Sequences], where: str) -> None:
    """Refuse a relation that is not about two steps of one task."""
    if any({before, after} <= set(task.steps) for task in tasks):
        return
    for name in (before, after):
        if not any(name in task.steps for task in tasks):
            hint = "`msg2 describe DATA` lists the steps"
            raise InputError(f"{short_repr(name)} is no step of the data", where=where, hint=hint)
    raise InputError("its two steps belong to different tasks", where=where)


def _read_relations(source: Source) -> Iterator[tuple[str, str, str, int | None, str]]:
    """(kind, before, after, weight, where) of every row of a CSV table, or of the JSON that graph files record."""
    if source.is_folder:
        raise InputError("is a folder, not a file of relations", where=source.path)
    if source.is_json:
        yield from _read_json_relations(source)
        return
    header: list[str] | None = None
    reader = csv.reader(source.lines(), strict=True)
    try:
        for cells in reader:
            where = source.row(reader.line_num)
            if not any(cells):
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                if header[:3] != ["kind", "before", "after"] or header[3:] not in ([], ["weight"]):
                    raise InputError("the columns are not kind,before,after or kind,before,after,weight", where=where)
                continue
            if len(cells) != len(header) or cells[0].strip() not in _KINDS:
                raise InputError("is no relation", where=where, hint=_FORM)
            weight = _parse_weight(cells[3], where) if len(cells) == 4 and cells[3].strip() else None
            yield _KINDS[cells[0].strip()], cells[1], cells[2], weight, where
    except csv.Error as error:
        raise InputError(f"the row cannot be read ({error})", where=source.row(reader.line_num)) from None
    if header is None:
        raise InputError("is empty", where=source.path, hint=_FORM)


def _parse_weight(value: object, where: str) -> int:
    """How many videos a hint is worth."""
    try:
        if isinstance(value, int | str) and (weight := int(value)) >= 1:
            return weight
    except ValueError:
        pass
    raise InputError(f"the weight is {short_repr(str(value))}, it must be a whole number of videos", where=where)


def _read_json_relations(source: Source) -> Iterator[tuple[str, str, str, int | None, str]]:
    """The relations of {"required": [[before, after], …], "forbidden": […], "hints": [[before, after, videos], …]}.

    As in a graph file, and so are "required_order" and "forbidden_order".
    """
    value = source.document
    if not isinstance(value, dict) or not value.keys() <= {*_KINDS.values(), "hints"}:
        hint = (
            'as in a graph file: {"required": [["A", "B"]], "forbidden_order": [["C", "D"]], "hints": [["E", "F", 3]]}'
        )
        what = "is not an object of required, forbidden, required_order, forbidden_order and hints"
        raise InputError(what, where=source.path, hint=hint)
    for kind, pairs in value.items():
        for number, pair in enumerate(pairs if isinstance(pairs, list) else [None]):
            where = f"{source.path}, {kind}, entry {number + 1}"
            match pair:
                case [str(before), str(after), weight] if kind == "hints":
                    yield "required", before, after, _parse_weight(weight, where), where
                case [str(before), str(after)] if kind != "hints":
                    yield kind, before, after, None, where
                case _:
                    raise InputError("is no relation", where=where)
