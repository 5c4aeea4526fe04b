"""For the site: every notebook is run, and becomes a page with its outputs; the notebook itself can be downloaded."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient

_TO_NOTEBOOK = re.compile(r"\]\((\w+)\.ipynb\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every notebook, and the pictures on it."""
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        path = PurePosixPath(notebook.src_uri)
        for name, content in _pages(path.stem, notebook.content_string).items():
            files.append(File.generated(config, str(path.with_name(name)), content=content))
    return files


@cache  # `mkdocs serve` builds after every change, most of them elsewhere
def _pages(name: str, text: str) -> dict[str, str]:
    """The page of a notebook and its pictures, by file name."""
    notebook = nbformat.reads(text, as_version=4)
    # Notebooks run in a folder of their own, and find `experiments` in the checkout.
    python_path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    with TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=None, extra_arguments=["--log-level=ERROR"], resources={"metadata": {"path": folder}}
        )
        client.execute(env=os.environ | {"PYTHONPATH": python_path})
    pictures: dict[str, str] = {}
    parts: list[str] = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(_TO_NOTEBOOK.sub(r"](\1.md)", cell.source))
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/svg+xml" in data:
                picture = f"{name}-{number}.svg"
                pictures[picture] = data["image/svg+xml"]
                parts.append(f"![What the cell above shows]({picture})")
            elif words := _words(output):
                parts.append(f"```text\n{words}\n```")
    parts.append(f"[Download this notebook]({name}.ipynb)")
    return {f"{name}.md": "\n\n".join(parts) + "\n", **pictures}


def _words(output: Any) -> str:
    """What a cell prints or returns; messages on standard error are left out."""
    if output.output_type == "stream":
        return output.text.rstrip() if output.name == "stdout" else ""
    return str(output.get("data", {}).get("text/plain", "")).rstrip()
