"""Figures of the code itself: its size, the names it uses, and how its modules hang together.

    python -m benchmarks.code_figures                 # of this checkout
    python -m benchmarks.code_figures --source DIR    # of another one: the folder of the package msg2

`tests/test_structure.py` holds what must not get worse.
"""

from __future__ import annotations

import argparse
import ast
import io
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


def public_functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the public functions of a module and the public methods of its public classes, commands left aside."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in module.tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]
        for function in inner:
            if isinstance(function, functions) and not function.name.startswith("_") and not _is_command(function):
                yield function


def _is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether Typer or FastAPI calls it: the docs of its arguments are their own."""
    text = " ".join(ast.unparse(one.annotation) for one in function.args.args if one.annotation is not None)
    decorators = " ".join(map(ast.unparse, function.decorator_list))
    return (
        "typer." in text
        or "Annotated" in text
        or any(one in decorators for one in ("app.command", "router.", "takes_"))
    )


def argument_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the arguments of a function, `self` and `cls` left aside."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return len([one for one in [*named, *rest] if one.arg not in ("self", "cls")])


def functions_without_parameters(modules: list[Module]) -> list[str]:
    """Find public functions of more than one argument whose docstring has no Parameters section."""
    return [
        f"{module.name}.{function.name}"
        for module in modules
        for function in public_functions(module)
        if argument_count(function) > 1 and "Parameters\n---" not in (ast.get_docstring(function) or "")
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
    by_part: dict[str, int] = defaultdict(int)
    for module in modules:
        by_part[[*module.name.split("."), ""][1]] += lines_of_code(module)
    return {
        "lines of code": sum(by_part.values()),
        "of these in experiments": by_part.get("experiments", 0),
        "modules": len(modules),
        "longest module (lines of code)": max(map(lines_of_code, modules)),
        "module names used twice": len(repeated_module_names(modules)),
        "type names used twice": len(repeated_type_names(modules)),
        "public functions of several arguments without Parameters": len(functions_without_parameters(modules)),
        "import cycles": len(import_cycles(modules)),
        "longest import chain": longest_import_chain(modules),
        "modules imported by one other only": len(imported_by_one(modules)),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=PACKAGE, help="the folder of the package")
    for name, value in figures(parser.parse_args().source).items():
        print(f"{value:7,}  {name}")


if __name__ == "__main__":
    main()
