"""Figures of the code itself: its size, the names it uses, and how its modules hang together.

    python -m benchmarks.code_figures                 # of this checkout
    python -m benchmarks.code_figures --source DIR    # of another one: the folder of the package msg2

`tests/test_structure.py` holds the bounds. A line of code is one that is not blank, a comment or a docstring. The
functions of `infer` are those with a name that a second `msg2.infer("steps.csv")` runs through, so that imports and
caches do not count.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

PACKAGE = Path(__file__).parents[1] / "src" / "msg2"
ALLOWED_TWICE = {"__init__", "registry", "states", "msg2"}
"""Names of modules that may occur twice: what every package has, a command beside the package that it is about, and the
method that the package is named after."""
NAMED_CYCLE = {("msg2.graph.graph", "msg2.drawing")}
"""A graph can show itself."""


@dataclass(frozen=True)
class Module:
    """A module: its dotted name, its file and its syntax tree."""

    name: str
    path: Path
    tree: ast.Module


def read_modules(package: Path) -> list[Module]:
    """Parse all modules of a package."""
    modules = []
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(name, path, ast.parse(path.read_text(encoding="utf-8"))))
    return modules


def lines_of_code(module: Module) -> int:
    """Count the lines that hold code: no blanks, no comments, no docstrings (nor the docs of fields and constants)."""
    text = module.path.read_text(encoding="utf-8")
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
               tokenize.ENDMARKER}  # fmt: skip
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def count_any(modules: list[Module]) -> int:
    """Count how often the code says `Any`."""
    return sum(
        token.type == tokenize.NAME and token.string == "Any"
        for module in modules
        for token in tokenize.generate_tokens(io.StringIO(module.path.read_text(encoding="utf-8")).readline)
    )


def _steps_table() -> str:
    """A table of steps with times, omissions, swaps, an OR and a repetition: all that the default learner looks at."""
    draw = random.Random(27)
    rows = ["video,step,start,end"]
    for video in range(40):
        steps = ["fill kettle", "boil water", draw.choice(["grind beans", "open can"]), "fill filter", "pour", "stir"]
        steps = [step for step in steps if draw.random() > 0.1]
        if draw.random() < 0.2:
            swapped = draw.randrange(len(steps) - 1)
            steps[swapped : swapped + 2] = reversed(steps[swapped : swapped + 2])
        steps += ["stir"] if draw.random() < 0.2 else []
        rows += [f"v{video},{step},{10 * place},{10 * place + 9}" for place, step in enumerate(steps)]
    return "\n".join(rows) + "\n"


_TRACE = """
import json, logging, sys
logging.disable()
import msg2
msg2.infer("steps.csv")
functions = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(sys.argv[1]) and "<" not in code.co_qualname.split(".")[-1]:
        functions.add((code.co_filename, code.co_qualname))
sys.setprofile(note)
msg2.infer("steps.csv")
sys.setprofile(None)
print(json.dumps(sorted(functions)))
"""


def functions_of_infer(package: Path) -> list[tuple[str, str]]:
    """List the file and the name of every function of the package that `msg2.infer("steps.csv")` runs through."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "steps.csv").write_text(_steps_table(), encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(package.resolve().parent)}
        command = [sys.executable, "-c", _TRACE, str(package.resolve())]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return [(file, name) for file, name in json.loads(done.stdout)]


def repeated_module_names(modules: list[Module]) -> dict[str, list[str]]:
    """Find names of modules that several modules have."""
    names = defaultdict(list)
    for module in modules:
        if module.path.stem not in ALLOWED_TWICE:
            names[module.path.stem].append(module.name)
    return {name: where for name, where in names.items() if len(where) > 1}


def repeated_type_names(modules: list[Module]) -> dict[str, list[str]]:
    """Find names of classes and type aliases that are defined in several modules; `_X` counts as `X`."""
    names = defaultdict(list)
    for module in modules:
        for name in _type_names(module.tree):
            names[name.lstrip("_")].append(module.name)
    return {name: where for name, where in names.items() if len(where) > 1}


def _type_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if ast.unparse(node.annotation) == "TypeAlias":
                yield node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            if name.lstrip("_")[:1].isupper() and not name.isupper() and isinstance(value, ast.Subscript | ast.BinOp):
                yield name


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def public_names(modules: list[Module]) -> set[str]:
    """Collect what `__all__` of the package and of its packages names: what users can count on."""
    names: set[str] = set()
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names |= set(ast.literal_eval(node.value))
    return names


def documented_functions(
    modules: list[Module],
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """Yield every function and method with its dotted name, and whether it is public."""
    public = public_names(modules)
    for module in modules:
        for node in module.tree.body:
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            for function in inside:
                if isinstance(function, _FUNCTIONS):
                    owner = node.name if isinstance(node, ast.ClassDef) else function.name
                    visible = owner in public and not function.name.startswith("_")
                    yield f"{module.name}.{function.name}", function, visible


def argument_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the arguments of a function, `self` and `cls` left aside."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return len([argument for argument in [*named, *rest] if argument.arg not in ("self", "cls")])


def _has_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return "Parameters\n---" in (ast.get_docstring(function) or "")


def functions_without_parameters(modules: list[Module]) -> list[str]:
    """List the public functions with several arguments whose docstring has no Parameters section."""
    return [
        name
        for name, function, public in documented_functions(modules)
        if public and argument_count(function) > 1 and not _has_parameters(function)
    ]


def private_functions_with_parameters(modules: list[Module]) -> list[str]:
    """List the functions that users cannot count on and whose docstring has a Parameters section all the same."""
    return [
        name for name, function, public in documented_functions(modules) if not public and _has_parameters(function)
    ]


def import_graph(modules: list[Module], *, lazy: bool = True) -> nx.DiGraph:
    """Draw an edge from every module to those of the package that it imports; with `lazy`, inside functions too."""
    names = {module.name for module in modules}
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    for module in modules:
        nodes = ast.walk(module.tree) if lazy else _eager_nodes(module.tree)
        for node in nodes:
            for target in _imported(node, names):
                if target != module.name:
                    graph.add_edge(module.name, target)
    return graph


def _eager_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs when the module is imported: no functions, no `if TYPE_CHECKING`."""
    for node in tree.body:
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node


def _imported(node: ast.AST, names: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            if inner in names or node.module in names:
                yield inner if inner in names else node.module


def import_cycles(modules: list[Module]) -> list[set[str]]:
    """Find modules that import each other when they are imported; packages that hand on their modules do not count."""
    packages = {module.name for module in modules if module.path.stem == "__init__"}
    graph = import_graph(modules, lazy=False)
    graph.remove_nodes_from(packages)
    return [found for found in nx.strongly_connected_components(graph) if len(found) > 1]


def longest_import_chain(modules: list[Module]) -> int:
    """Count the modules on the longest chain of imports, cycles counted as one."""
    condensed = nx.condensation(import_graph(modules, lazy=False))
    return nx.dag_longest_path_length(condensed) + 1 if len(condensed) else 0


def imported_by_one(modules: list[Module]) -> list[str]:
    """Find modules that exactly one other module imports."""
    graph = import_graph(modules)
    packages = {module.name for module in modules if module.path.stem == "__init__"}
    return sorted(name for name in graph if name not in packages and graph.in_degree(name) == 1)


def figures(package: Path) -> Mapping[str, int]:
    """Compute all figures of a package."""
    modules = read_modules(package)
    infer = functions_of_infer(package)
    return {
        "lines": sum(len(module.path.read_text(encoding="utf-8").splitlines()) for module in modules),
        "lines of code": sum(map(lines_of_code, modules)),
        "modules": len(modules),
        "modules imported by one other only": len(imported_by_one(modules)),
        'functions in infer("steps.csv")': len(infer),
        "modules of these functions": len({file for file, _ in infer}),
        "Any": count_any(modules),
        "private functions with a Parameters section": len(private_functions_with_parameters(modules)),
        "public functions of several arguments without one": len(functions_without_parameters(modules)),
        "longest module (lines of code)": max(map(lines_of_code, modules)),
        "module names used twice": len(repeated_module_names(modules)),
        "type names used twice": len(repeated_type_names(modules)),
        "import cycles": len(import_cycles(modules)),
        "longest import chain": longest_import_chain(modules),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=PACKAGE, help="the folder of the package")
    for name, value in figures(parser.parse_args().source).items():
        print(f"{value:7,}  {name}")


if __name__ == "__main__":
    main()
