"""A written procedure: the steps of a text and what it says of their order, read by rules and without a model.

Steps are the items of numbered and bulleted lists, or the lines of a text without lists; an item with sub-items is a
heading of them. Lists below "Ingredients", "Tools" and the like are no steps, nor are warnings and notes. Words that
are understood: "optional", "either … or …", "while" and "meanwhile", "before …", "after …", "in any order", ", then".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, zip_longest
from pathlib import Path

from msg2.errors import InputError, errors_at, optional_dependency, require
from msg2.formats.source import Source
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.task import Step

_ITEM = re.compile(
    r"^(\s*)(?:(?:step\s*)?(?:\d+(?:\.\d+)*|[a-z])[.):]\s+|step\s+\d+\s+|[-*+•–]\s+)(.*)$", re.IGNORECASE
)
_ROLE = re.compile(
    r"\b(ingredients?|tools?|equipment|materials?|you(?:'ll| will)? need|notes?|tips?|nutrition|safety)\b", re.I
)
_REMARK = re.compile(r"^(?:warning|caution|note|tip|danger|hint)\b|^(?:do not|don't|never|be careful)\b", re.IGNORECASE)
_OPTIONAL = re.compile(
    r"\s*[([]?\b(?:optional(?:ly)?|if (?:you like|you want|desired|needed|necessary))\b[)\]]?[:,]?\s*", re.I
)
_WHILE = re.compile(r"^(?:meanwhile|in the meantime|at the same time),?\s+|^while [^,]+,\s+|,?\s+while .+$", re.I)
_EITHER = re.compile(r"^(?:(.*)\s)?either:?\s+(.+?),?\s+or\s+(?:else\s+)?(.+)$", re.IGNORECASE)
_ORDER = re.compile(r"^(before|after|once)\s+([^,]+),\s+(.+)$|^(.+?),?\s+(before|after|once)\s+(.+)$", re.IGNORECASE)
_SMALL = re.compile(
    r"\b(?:an?|and|as|at|by|for|from|in|into|is|its?|off?|on|onto|or|out|over|that|the|them|then|to|up|with)\b"
)
SAME_WORDS = 0.5
"""Names with so many words in common are alike."""


@dataclass(frozen=True, slots=True)
class WrittenProcedure:
    """Steps in the order of a text, and pairs of which the text says something else."""

    title: str
    steps: tuple[Step, ...]
    optional: frozenset[Step] = frozenset()
    exclusive: tuple[tuple[Step, ...], ...] = ()
    """Steps of which one is done."""
    unordered: frozenset[frozenset[Step]] = frozenset()
    """Pairs that are done at the same time, or in any order."""

    @property
    def order(self) -> frozenset[tuple[Step, Step]]:
        """The pairs (before, after) that it states, all that follow included."""
        free = {*self.unordered, *(frozenset(pair) for group in self.exclusive for pair in combinations(group, 2))}
        return frozenset(pair for pair in combinations(self.steps, 2) if frozenset(pair) not in free)

    def graph(self) -> SubtaskGraph:
        """The graph of the text alone, in which each step needs what comes before it; every edge is "from the text"."""
        order, instead = self.order, {name: group for group in self.exclusive for name in group}
        preconditions, after = {}, []
        for late in self.steps:
            earlier = [name for name in self.steps if (name, late) in order]
            sure = [name for name in earlier if name not in self.optional]
            last = [name for name in sure if not any((name, other) in order for other in sure)]
            preconditions[late] = all_of(any_of(map(step, instead.get(name, (name,)))) for name in last)
            loose = [name for name in earlier if name in self.optional]
            after += [(name, late) for name in loose if not any((name, other) in order for other in (*sure, *loose))]
        made = {"name": "text", "videos": []}
        graph = SubtaskGraph(
            self.title, self.steps, preconditions, made, order=after, exclusive=self.exclusive, optional=self.optional
        )
        edges: dict[Step, dict[str, dict[str, object]]] = {}
        for early, late in sorted(graph.edge_pairs()):
            edges.setdefault(late, {})[early] = {"said_by": ["text"]}
        return replace(graph, evidence={late: {"edges": said} for late, said in edges.items()})


def read_procedure(text: str | Path) -> WrittenProcedure:
    """Read a written procedure from a file (.txt, .md, .docx), or from the text itself where that has several lines.

    >>> made = read_procedure("1. Boil water.\\n2. Meanwhile, grind.\\n3. Pour (optional)\\n4. Either stir or shake")
    >>> made.steps, sorted(made.optional), made.exclusive, len(made.order)
    (('Boil water', 'grind', 'Pour', 'stir', 'shake'), ['Pour'], (('stir', 'shake'),), 8)
    """
    if isinstance(text, str) and "\n" in text:
        return parse_procedure(text.splitlines(), "procedure")
    path, suffix = Path(text), Path(text).suffix.lower()
    if suffix in (".pdf", ".doc", ".odt", ".rtf"):
        require(path.exists(), "there is no such file", where=path)
        raise InputError(f"{suffix} cannot be read", where=path, hint="save it as text, Markdown or .docx")
    with errors_at(path):
        source = Source.at(path)
        require(not source.is_folder, "is a folder, not a written procedure")
        lines = _docx_lines(path) if suffix == ".docx" else source.read_text().splitlines()
        return parse_procedure(lines, path.stem)


def _docx_lines(path: Path) -> list[str]:
    """The paragraphs of a Word document as the lines of a Markdown file."""
    with optional_dependency("reading a Word document", "docx"):
        import docx
        from docx.opc.exceptions import PackageNotFoundError
    try:
        paragraphs = docx.Document(str(path)).paragraphs
    except (PackageNotFoundError, KeyError, ValueError, OSError) as error:
        raise InputError("is no Word document", hint="save it as text or .docx") from error
    lines = []
    for paragraph in paragraphs:
        style = (paragraph.style.name if paragraph.style is not None else None) or ""
        deep = int(style[-1]) - 1 if style[-1:].isdigit() else 0
        is_item = style.startswith("List") or (paragraph._p.pPr is not None and paragraph._p.pPr.numPr is not None)
        mark = "# " if style.startswith(("Heading", "Title")) else "  " * deep + "- " if is_item else ""
        lines.append(mark + paragraph.text)
    return lines


@dataclass(slots=True)
class _Item:
    """An item of a list, or a line where there is no list."""

    indent: int
    text: str
    parents: tuple[str, ...] = ()


def parse_procedure(lines: Sequence[str], title: str) -> WrittenProcedure:
    """Read the lines of a procedure."""
    title, items = _items(lines, title)
    steps: list[Step] = []
    optional: set[Step] = set()
    free: set[frozenset[Step]] = set()
    groups: dict[tuple[str, ...], list[Step]] = {}
    exclusive: list[tuple[Step, ...]] = []
    moves: list[tuple[Step, str, str]] = []
    latest: list[Step] = []
    for item in items:
        for text in re.split(r"[,;]?\s+then\s+(?=\w)", item.text):
            left_out, text = bool(_OPTIONAL.search(text)), _OPTIONAL.sub(" ", text).strip(" ,;:.")
            at_once, text = bool(_WHILE.search(text)), _WHILE.sub("", text).strip(" ,;:.")
            either = _EITHER.match(text)
            names = [part.strip(" ,;:.") for part in either.groups()[1:]] if either else [text]
            if not either and (told := _ORDER.match(text)):
                word, other, own = (told[1], told[2], told[3]) if told[1] else (told[5], told[6], told[4])
                names = [own.strip(" ,;:.")]
                moves.append((names[0], word.lower(), other))
            names = [name for name in dict.fromkeys(names) if name and name not in steps]
            if at_once:
                free |= {frozenset((earlier, name)) for earlier in latest for name in names}
            steps += names
            latest = names or latest
            optional |= set(names) if left_out or any(_OPTIONAL.search(above) for above in item.parents) else set()
            if len(names) > 1:
                exclusive.append(tuple(names))
            groups.setdefault(item.parents, []).extend(names)
    for parents, members in groups.items():
        if parents and re.search(r"\bany order\b", parents[-1], re.IGNORECASE):
            free |= {frozenset(pair) for pair in combinations(members, 2)}
        elif parents and re.search(r"\b(?:either|one of)\b", parents[-1], re.IGNORECASE) and len(members) > 1:
            exclusive.append(tuple(members))
    for name, word, other in moves:
        near = most_alike(other, [own for own in steps if own != name])
        grouped = any(name in group for group in exclusive)
        if near is not None and not grouped and (steps.index(near) < steps.index(name)) == (word == "before"):
            steps.remove(name)
            places = [steps.index(own) for group in (*exclusive, (near,)) if near in group for own in group]
            steps.insert(min(places) if word == "before" else max(places) + 1, name)
            free = {pair for pair in free if name not in pair}
            free |= {pair - {near} | {name} for pair in free if near in pair}
    require(steps, "has no step", hint="write one step per line, or a numbered list")
    return WrittenProcedure(title, tuple(steps), frozenset(optional), tuple(exclusive), frozenset(free))


def _items(lines: Sequence[str], title: str) -> tuple[str, list[_Item]]:
    """The title, and the items that are steps: without remarks, and those that are only headings of others."""
    marked: list[_Item] = []
    plain: list[_Item] = []
    skipped, titled = False, False
    for line in lines:
        if heading := re.match(r"^#+\s+(.*)$", line):
            if not titled and not marked and not plain:
                title = heading[1].strip() or title
            titled, skipped = True, bool(_ROLE.search(heading[1]))
        elif line.strip() and not (item := _ITEM.match(line)) and line.rstrip().endswith(":"):
            skipped = bool(_ROLE.search(line))
        elif line.strip() and not skipped:
            text = re.sub(r"^\[[ xX]?\]\s*|[*_`]{1,2}", "", item[2] if item else line.strip())
            if text and not _REMARK.search(text):
                first = re.split(r"(?<=[\w)])[.!](?:\s+|$)", text)[0]  # what comes after its first sentence explains it
                (marked if item else plain).append(
                    _Item(len(item[1].expandtabs(4)) if item else 0, " ".join(first.split()))
                )
    return title, list(_without_headings(marked or plain))


def _without_headings(items: Sequence[_Item]) -> Iterator[_Item]:
    """The items that have no sub-items, with those above them."""
    above: list[_Item] = []
    for item, following in zip_longest(items, items[1:]):
        while above and above[-1].indent >= item.indent:
            above.pop()
        if following is not None and following.indent > item.indent:
            above.append(item)
        else:
            yield _Item(item.indent, item.text, tuple(parent.text for parent in above))


def most_alike(text: str, names: Sequence[Step]) -> Step | None:
    """The name that shares most words with a text, if that is half of them; None where there is none.

    >>> most_alike("pouring the water", ["boil water", "pour water in"])
    'pour water in'
    """
    alike = [word_overlap(text, name) for name in names]
    best = max(range(len(names)), key=alike.__getitem__, default=None)
    return None if best is None or alike[best] < SAME_WORDS else names[best]


def word_overlap(first: str, second: str) -> float:
    """Share of the words of two names that both have, endings and small words left aside: 2 |common| / (n + m)."""
    own, other = _words(first), _words(second)
    return 2 * len(own & other) / max(len(own) + len(other), 1)


def _words(text: str) -> frozenset[str]:
    """The words of a name, cut down to their stems."""
    words = re.findall(r"\w+", _SMALL.sub(" ", text.casefold()))
    return frozenset(re.sub(r"(?<=\w{3})(?:ings?|ed|es|s|e)$", "", word) for word in words)
