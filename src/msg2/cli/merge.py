"""`msg2 merge`: the graphs that several people drew of one task, by majority."""

from pathlib import Path
from typing import Annotated

from msg2.cli import console, flags
from msg2.cli.flags import argument, output_option
from msg2.errors import InputError
from msg2.files import write_whole
from msg2.formats import read_graph
from msg2.inference.merging import Vote, merge_graphs

_WORDS = {"needs": "needs", "after": "comes after", "exclusive": "is never done with"}


def merge(
    graphs: Annotated[list[Path], argument("GRAPH", "Graph files of the same steps.")],
    output: Annotated[Path, output_option("OUT", "The merged graph file.")],
    json: flags.Json = False,
) -> None:
    """Merge the graphs that several people drew of one task: what more than half of them say stays.

    They vote on what each step needs, on which step comes after which if both are done, on steps that exclude each
    other and on optional ones. What they disagree on is printed, ties and contradictions included; the file has the
    agreement on all of it.

    Example: `msg2 merge ann.json ben.json cem.json -o truth.json`
    """
    try:
        merged = merge_graphs([read_graph(path) for path in graphs])
    except InputError as error:
        number = (error.where or "").removeprefix("graph ")
        where = graphs[int(number) - 1] if number.isdigit() else error.where
        raise InputError(error.what, where=where, hint=error.hint) from None
    write_whole(output, merged.graph.dumps())
    if json:
        console.print_json({"file": str(output), "votes": [vote.to_json() for vote in merged.votes]})
    else:
        if merged.disagreements:
            rows = [_row(vote, [path.stem for path in graphs]) for vote in merged.disagreements]
            console.print_table(["step", "what is said of it", "agreed", "outcome", "who says so"], rows)
        agreed = len(merged.votes) - len(merged.disagreements)
        console.print_line(f"{agreed} of {len(merged.votes)} statements are in all {len(graphs)} graphs.", str(output))


def _row(vote: Vote, names: list[str]) -> tuple[str, ...]:
    voters = ", ".join(names[place] for place in vote.voters)
    said = "is optional" if vote.kind == "optional" else f"{_WORDS[vote.kind]} {vote.clause}"
    return vote.step, said, f"{len(vote.voters)} of {vote.of}", vote.outcome, voters
