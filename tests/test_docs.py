"""The documentation is true: it builds, its commands exist, and what it shows is what they print.

On `RUN` pages, files are the code blocks with a title, and every `console` block is run, in order, in one folder. After
an intended change, `python -m tests.test_docs` writes the true outputs, and the pictures, into the pages.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from typer.main import get_command

import msg2
from experiments import EXPERIMENTS
from experiments.__main__ import app as experiments_app
from experiments.scripts.__main__ import app as scripts_app
from msg2.cli import console
from msg2.cli.app import app, main
from msg2.inference import METHODS
from msg2.simulation import NoiseOptions

ROOT = Path(__file__).parents[1]
RESULTS = [f"{name}-held-out" if known.held_out else name for name, known in EXPERIMENTS.items()]
"""The results on the pages: where there is a held-out set, those of that."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(page for folder in ("api", "commands", "tutorials") for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
GUIDES = (
    "assistant",
    "formats",
    "formats-more",
    "formats-results",
    "formats-tables",
    "pictures",
    "graph-file",
    "media",
    "own-features",
    "states",
    "tutorial",
)
RUN = [ROOT / "README.md", *(ROOT / f"docs/{name}.md" for name in GUIDES), *TUTORIALS]
LONG = {"media.md", "own-features.md", "states.md", "videos.md"}
"""Pages that render videos or train models: minutes."""
PICTURES = sorted((ROOT / "docs/images").iterdir())
HOME = "/home/you/msg2"
"""Stands for the folder in which the pages are run."""

BLOCK = re.compile(r"^(?P<fence>```(?P<info>[^\n]*)\n)(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
PIPE = re.compile(r" (?:\||2?>|<)")
"""Where a command ends and its input and output are told to go elsewhere."""
NUMBER = re.compile(r"(?<![\d.])\d{1,3}\.\d\d(?!\d)")


# -- running a page ---------------------------------------------------------------------------------------------


def with_true_outputs(page: Path, folder: Path, data: Path | None) -> str:
    """The text of a page with the outputs of its commands as they are now."""
    if data is not None:
        (folder / "datasets").symlink_to(data)

    def true(block: re.Match[str]) -> str:
        title = re.search(r'title="([^"]+)"', block["info"])
        if title:
            (folder / title[1]).write_text(block["body"], encoding="utf-8")
        if block["info"] != "console":
            return block[0]
        shown = "".join(f"$ {command}\n{_output(command, folder)}" for command in _commands(block["body"]))
        return f"{block['fence']}{shown}```"

    return BLOCK.sub(true, page.read_text(encoding="utf-8"))


def _commands(body: str) -> list[str]:
    return [line.removeprefix("$ ") for line in body.splitlines() if line.startswith("$ ")]


def _output(command: str, folder: Path) -> str:
    """What a command prints; setting up is left to make and pip.

    `msg2` and Python scripts run in this process, and what they are piped to runs after them: the order of two streams
    does not depend on which program is faster. Messages that go past a pipe come after what comes out of it.
    """
    if command.startswith(("make ", "pip ")):
        return ""
    before, ours, after = _split_pipe(command.replace(".venv/bin/", ""))
    text, messages = _run_shell(before, folder), ""
    if ours:
        text, messages = _run_here(ours, folder, text, piped=bool(after))
    if after:
        text = _run_shell(after, folder, text)
    lines = (text + messages).replace(str(folder.resolve()), HOME).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _split_pipe(command: str) -> tuple[str, str, str]:
    """What feeds `msg2` or a script, that command with its redirections, and what it is piped to; each may be empty."""
    parts = re.split(r""" \| (?=(?:[^'"]|'[^']*'|"[^"]*")*$)""", command)
    for number, part in enumerate(parts):
        if re.match(r"msg2 |python \w+\.py", part):
            return " | ".join(parts[:number]), part, " | ".join(parts[number + 1 :])
    return command, "", ""


def _run_shell(line: str, folder: Path, stdin: str = "") -> str:
    """What other programs print."""
    if not line:
        return ""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "COLUMNS": "100",
    }
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, input=stdin, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ).stdout  # fmt: skip


def _run_here(line: str, folder: Path, stdin: str, *, piped: bool) -> tuple[str, str]:
    """The two streams of a command that runs in this process; without a pipe or redirection they are one."""
    words = shlex.split(line)
    streams: dict[str, io.StringIO] = {"out": io.StringIO()}
    targets: dict[str, Path] = {}
    merged = not piped
    for sign in ("<", "2>&1", "2>", ">"):
        if sign not in words:
            continue
        place = words.index(sign)
        words.pop(place)
        if sign == "2>&1":
            merged = True
            continue
        file = folder / words.pop(place)
        if sign == "<":
            stdin = file.read_text(encoding="utf-8")
        else:
            targets["err" if sign == "2>" else "out"] = file
            merged = False
    streams["err"] = streams["out"] if merged else io.StringIO()
    program, *arguments = words
    with pytest.MonkeyPatch.context() as patch, chdir(folder):
        patch.setenv("COLUMNS", "100")
        patch.setattr(console.err, "_width", 100)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        patch.setattr(sys, "argv", words if program == "msg2" else arguments)
        with redirect_stdout(streams["out"]), redirect_stderr(streams["err"]), suppress(SystemExit):
            if program == "msg2":
                main()
            else:
                # As in a process of its own, where nobody has set up any logging.
                patch.setattr(logging.getLogger("msg2"), "handlers", [logging.StreamHandler(streams["err"])])
                patch.setattr(logging.getLogger("msg2"), "level", logging.WARNING)
                patch.syspath_prepend(folder)
                runpy.run_path(str(folder / arguments[0]), run_name="__main__")
    for name, file in targets.items():
        file.write_text(streams[name].getvalue(), encoding="utf-8")
    text, messages = ("" if name in targets else streams[name].getvalue() for name in ("out", "err"))
    return text, "" if merged else messages


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in LONG else []) for page in RUN],
)
def test_shown_outputs_are_what_the_commands_print(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if page.name == "media.md" and not shutil.which("espeak-ng"):
        pytest.skip("espeak-ng is not installed, and the page is about videos with sound")
    text = page.read_text(encoding="utf-8")
    data = request.getfixturevalue("data") if "datasets/" in "".join(b["body"] for b in BLOCK.finditer(text)) else None
    assert with_true_outputs(page, tmp_path, data) == text, "if this is intended: python -m tests.test_docs"
    shown = re.findall(r"\]\(images/([^)]+\.svg)\)", text)  # `docs/screenshots.py` makes the others
    if page.parent.name == "docs":
        assert set(shown) <= {file.name for file in tmp_path.iterdir()}


# -- what the pages speak of ------------------------------------------------------------------------------------


def shown_commands() -> list[tuple[str, str]]:
    """(page, command) of every msg2 command in a console block."""
    return [
        (page.name, PIPE.split(command)[0].removeprefix(".venv/bin/"))
        for page in PAGES
        for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if block["info"] == "console"
        for command in _commands(block["body"])
        if command.removeprefix(".venv/bin/").startswith("msg2 ")
    ]


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    """The commands of msg2 by name."""
    program: Any = get_command(app)
    return {name: program.get_command(None, name) for name in program.list_commands(None)}


def test_shown_commands_parse(commands: dict[str, Any]) -> None:
    for _, command in shown_commands():
        _, name, *arguments = shlex.split(command)
        commands[name].make_context(name, arguments)  # raises on bad usage


def test_commands_and_options_in_running_text_exist(commands: dict[str, Any]) -> None:
    roots = [*commands.values(), get_command(experiments_app), get_command(scripts_app)]
    every = [command for root in roots for command in (root, *getattr(root, "commands", {}).values())]
    options = {"--version", "--help", "--install-completion"} | {
        option
        for command in (get_command(app), *every)
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for page in PAGES:
        for code in re.findall(r"`((?:msg2 |--)[^`]+)`", BLOCK.sub("", page.read_text(encoding="utf-8"))):
            words = code.split()
            if words[0] == "msg2":
                assert words[1] in commands or words[1].startswith("--"), (page.name, code)
            assert {word for word in words if word.startswith("--")} <= options, (page.name, code)


def test_every_command_method_and_experiment_is_documented(commands: dict[str, Any]) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in commands:
        assert f"msg2 {name}" in text
    for name in METHODS:
        assert f"**`{name}`**" in text or name == "msg2"
    for name in RESULTS:
        assert f'docs/results/{name}.md"' in text


def test_the_pages_about_commands_are_what_the_help_says(commands: dict[str, Any]) -> None:
    pages: dict[Path, str] = runpy.run_path(str(ROOT / "docs/commands.py"))["command_pages"]()
    assert set(pages) == {ROOT / "docs/commands.md", *(ROOT / "docs/commands").glob("*.md")}
    for page, text in pages.items():
        assert page.read_text(encoding="utf-8") == text, "if this is intended: python docs/commands.py"
    every = "".join(pages.values())
    for name, command in commands.items():
        for one in getattr(command, "commands", {name: command}).values():
            assert all(f"`{option}" in every for parameter in one.params for option in parameter.opts if "-" in option)


def test_every_public_name_is_on_the_overview_of_python() -> None:
    overview = (ROOT / "docs/api/index.md").read_text(encoding="utf-8")
    rows = "".join(re.findall(r"^\| (`.+?) \|", overview, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows)) == set(msg2.__all__)


API_MEMBERS = re.compile(r"^::: (msg2[\w.]*)\n(?:    options:\n(?:      .*\n)*?      members: \[(.+)\])?", re.MULTILINE)


@pytest.mark.parametrize("page", sorted((ROOT / "docs/api").glob("*.md")), ids=lambda page: page.name)
def test_the_members_that_a_page_on_python_lists_exist(page: Path) -> None:
    for name, members in API_MEMBERS.findall(page.read_text(encoding="utf-8")):
        if page.name in ("server.md", "encoders.md"):
            pytest.importorskip("torch")
            pytest.importorskip("fastapi")
        try:
            target = importlib.import_module(name)
        except ModuleNotFoundError:
            package, _, attribute = name.rpartition(".")
            target = getattr(importlib.import_module(package), attribute)
        for member in filter(None, re.split(r'[", ]+', members)):
            assert hasattr(target, member), f"{name} has no {member}"


def test_names_of_the_package_on_the_pages_exist() -> None:
    names = {name for page in PAGES for name in re.findall(r"\bmsg2\.([a-z_A-Z]+)\(", page.read_text(encoding="utf-8"))}
    assert names <= {*msg2.__all__}


def test_the_glossary_defines_each_term_once() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    anchors = re.findall(r"^\*\*.+\*\*\{ #([\w-]+) \}", text, re.MULTILINE)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= set(anchors)
    needed = """step segment label video task demonstration subtask-graph precondition order alternative optional
        interchangeable eligible completion purity delta alpha recency layer evidence support weak confidence bootstrap
        presence constraint hint world simulation violation-rate accuracy spoc compatibility edge-f1
        transitive-reduction ranker next-step forecast lookahead mistake deviation online feature-store encoder
        needs after exclusive required repeats kind due gain fit absent accused not-seen narration caption
        verb-phrase draft kappa state-prediction state evidence-model filled-label variant model-card checkpoint"""
    assert set(needed.split()) <= set(anchors)


def test_no_page_uses_words_of_a_private_language() -> None:
    avoided = re.compile(
        r"\b(rooms?|witness|habits?|oddit(?:y|ies)|remarks?|footage|shelf|desk|chores?|whole way)\b", re.I
    )
    apart = ("paper-and-implementation.md", "paper-line-by-line.md", "changelog.md", "changelog-older.md")
    pages = [page for page in PAGES if page.name not in apart]
    found = [
        (page.name, word)
        for page in pages
        for word in avoided.findall(page.read_text(encoding="utf-8").replace(" shelf (", ""))  # said in the videos
    ]
    assert found == []


def test_noise_rates_are_those_of_the_options() -> None:
    text = (ROOT / "docs/method.md").read_text(encoding="utf-8")
    shown = {name: float(rate) for name, rate in re.findall(r"^\| (\w+) \| `--\w+` \| ([\d.]+) \|", text, re.MULTILINE)}
    assert shown == {field.name: getattr(NoiseOptions(), field.name) for field in fields(NoiseOptions)}


def test_readme_starts_with_the_two_commands() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    assert "$ make demo" in first_screen
    assert "$ make test" in first_screen


def test_versions_agree() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    cited, date = (
        re.search(rf'^{key}: "?([\d.-]+)"?$', citation, re.MULTILINE) for key in ("version", "date-released")
    )
    assert cited is not None
    assert date is not None
    assert cited[1] == version
    assert f"## [{version}] - {date[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# -- numbers ----------------------------------------------------------------------------------------------------

GAINS: dict[str, tuple[str, int, str, tuple[str | None, str | None, str, str]]] = {
    "Order of the steps from clean labels, edge F1": (
        "captaincook4d", 0, "edge F1", ("always-before", "always-before", "msg2, δ auto", "likelihood"),
    ),
    "Order of the steps from recordings with mistakes, edge F1": (
        "captaincook4d", 3, "edge F1", ("always-before", "always-before, δ = 0.8", "msg2, δ auto", "likelihood"),
    ),
    "Order of the steps from noisy labels, edge F1": (
        "graphs", 0, "edge F1", ("always-before", "always-before, δ = 0.8", "msg2, δ auto", "likelihood"),
    ),
    "Preconditions from noisy labels, accuracy": (
        "graphs", 0, "accuracy", ("always-before", "always-before, δ = 0.8", "msg2, δ auto", "likelihood"),
    ),
    "Kinds of pairs of steps that are right: needs, after if done, exclusive, free": (
        "kinds-held-out", 1, "1000 cases",
        ("counting, 5 % exceptions", "counting, 5 % exceptions", "msg2", "likelihood"),
    ),
    "Alternatives (OR) that are recovered exactly, without noise": (
        "recovery", 2, "preconditions with OR, percent",
        ("always-before", "always-before", "msg2, δ auto", "likelihood"),
    ),
    "How far an edge's probability is from the truth (less is better)": (
        "calibration", 0, "calibration error, percent",
        ("always-before", "always-before, δ = 0.8", "msg2, δ auto", "likelihood"),
    ),
    "Next step right": ("next-step", 0, "mean", ("bigram", None, "msg2", "learned")),
    "Mistakes found while they happen, F1": (
        "mistakes", 0, "F1",
        ("always-before: or a successor was done", "always-before:delta=0.8, every deviation", "msg2, online",
         "likelihood, online"),
    ),
    "Recordings with a mistake that are accused of one": (
        "accusations", 1, "%", ("always-before", "always-before", "msg2", "likelihood"),
    ),
    "Recordings without any that are accused (less is better)": (
        "accusations", 1, "% ", ("always-before", "always-before", "msg2", "likelihood"),
    ),
    "Labels added for steps that nobody labelled, share that is right": (
        "states", 2, "precision of added labels", (None, None, "paper", "evidence"),
    ),
}  # fmt: skip
"""Rows of the README's table: experiment, its table, the column of that table, and the rows of baseline, the
same at its best fixed setting, paper, default.

In `next-step` it is the other way round: methods are columns. Of `accusations`, the rows in the order of time count."""


def measured(experiment: str, number: int, what: str, method: str) -> float:
    """The number of a method in the results of an experiment."""
    table = _results(experiment)["tables"][number]
    rows = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    value: float = rows[what][method] if experiment == "next-step" else rows[method][what]
    return value


def _results(experiment: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / f"docs/results/{experiment}.json").read_text(encoding="utf-8"))
    return found


def test_numbers_in_the_readme_are_the_measured_ones() -> None:
    table = re.findall(r"^\| (.+) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    header, *rows = [[cell.strip() for cell in line.split(" | ")] for line in table]
    assert header[2:] == ["Simple baseline", "At its best", "Paper's method", "Default", "Command"]
    assert [row[0] for row in rows] == list(GAINS)
    for title, _, *shown, command in rows:
        experiment, number, what, methods = GAINS[title]
        assert command == f"`python -m experiments {experiment.replace('-held-out', ' --held-out')}`"
        values = [None if method is None else measured(experiment, number, what, method) for method in methods]
        assert shown == ["–" if value is None else f"{value:.2f}" for value in values], title


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/index.md",
        "docs/questions.md",
        *(f"docs/{p.name}" for p in PAGES if p.stem.startswith("results")),
    ],
)
def test_numbers_in_running_text_are_measured(name: str) -> None:
    known = {"3.11", "89.66"}  # Python; always-before on CaptainCook4D against the raw edges of the truth
    for experiment in RESULTS:
        known |= set(NUMBER.findall((ROOT / f"docs/results/{experiment}.md").read_text(encoding="utf-8")))
    text = BLOCK.sub("", (ROOT / name).read_text(encoding="utf-8"))
    assert set(NUMBER.findall(text)) - known == set()


def test_both_files_of_a_result_agree() -> None:
    for experiment in RESULTS:
        markdown = (ROOT / f"docs/results/{experiment}.md").read_text(encoding="utf-8")
        for table in _results(experiment)["tables"]:
            for row in table["rows"]:
                cells = ["N/A" if c is None else f"{c:.2f}" if isinstance(c, float) else str(c) for c in row]
                assert f"| {' | '.join(cells)} |" in markdown, experiment


# -- the site ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_in_the_checkout_lead_somewhere(name: str) -> None:
    text = BLOCK.sub("", (ROOT / name).read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        if path.startswith("https://"):
            continue
        page = ROOT / path if path else ROOT / name
        assert page.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings], target


if __name__ == "__main__":
    for page in RUN:
        with TemporaryDirectory() as place:
            annotations = Path(os.environ.get("MSG2_DATA", ROOT / "../shared/data")).resolve()
            page.write_text(with_true_outputs(page, Path(place), annotations), encoding="utf-8")
            for picture in PICTURES:
                if (Path(place) / picture.name).is_file():
                    shutil.copyfile(Path(place) / picture.name, picture)
