"""The licences of what msg2 needs when it runs: of distributions as stated, of libraries inside wheels by name.

    python -m benchmarks.licences        # after a change of requirements, in `.venv`: the tables of docs/licences.md

Wheels carry libraries of others in a folder of their own (`av.libs/libx264-….so`), under licences that the metadata of
the distribution does not name. What is linked into an extension module cannot be seen this way.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import Distribution, distributions

from benchmarks.install_size import ROOT, normalized, required

PERMISSIVE = {
    "0BSD", "3-Clause BSD License", "Apache 2.0", "Apache 2.0 License", "Apache Software License", "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception", "BSD License", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0",
    "CNRI-Python", "ISC License (ISCL)", "MIT", "MIT License", "MIT-CMU", "PSF-2.0",
    "Python Software Foundation License", "Zlib",
}  # fmt: skip
"""Licences, in the words of the distributions, that ask for no more than their text to be kept."""
WEAK_COPYLEFT = {"MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)"}
"""Changes to the distribution itself stay free; programs that use it are not concerned."""
PAGE = ROOT / "docs" / "licences.md"
TABLES = "\n## Tables\n\n"
"""Where they begin on the page."""

_LIBRARIES = {
    "GPL": "libx264 libx265 libjbig",
    "GPL as built with x264": """
        libavcodec libavdevice libavfilter libavformat libavutil libswresample libswscale""",
    "GPL with the GCC runtime exception": "libgfortran libgomp",
    "LGPL": """
        libasound libcairo libdatrie libfribidi libgmp libgnutls libgraphite2 libhogweed libltdl libmp3lame
        libnettle libpango libpangocairo libpangoft2 libquadmath libthai libunistring""",
    "EPL": """
        libcdt libcgraph libgvc libgvplugin_core libgvplugin_dot_layout libgvplugin_gd libgvplugin_neato_layout
        libgvplugin_pango libgvpr libpathplan libxdot""",
    "Apache": "libopencore",
    "BSD": """
        libSvtAv1Enc libavif libdav1d libjemalloc libjpeg libopenjp2 libopus libscipy_openblas libscipy_openblas64_
        libsharpyuv libuuid libvpx libwebp libwebpdemux libwebpmux libzstd""",
    "MIT": """
        libXau libXpm libbrotlicommon libbrotlidec libctranslate2 libdrm libfontconfig libharfbuzz liblcms2
        libpixman libvpl libxcb""",
    "a permissive one of its own": "libbz2 libfreetype libgd liblzma libpng16 libtiff",
}
BUNDLED = {name: licence for licence, names in _LIBRARIES.items() for name in names.split()}
"""Libraries of others inside wheels. GPL, LGPL, EPL, BSD and so on stand for any of their versions."""


def run_time_distributions() -> dict[str, Distribution]:
    """Everything that msg2 and all its optional parts need and that is installed here, by name; not msg2 itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = {normalized(each.name): each for each in distributions()}
    names = required(installed, "msg2", project["optional-dependencies"])
    return {name: installed[name] for name in sorted(names - {"msg2"})}


def stated_licence(distribution: Distribution) -> str:
    """The licence of a distribution in the words of its metadata."""
    metadata = distribution.metadata
    classifiers = [
        line.split(" :: ")[-1] for line in metadata.get_all("Classifier", []) if line.startswith("License ::")
    ]
    text = str(metadata.get("License") or "nothing stated").splitlines()[0]
    return str(metadata.get("License-Expression") or ", ".join(classifiers) or text)


def licences_of(statement: str) -> set[str]:
    """The single licences of a statement; of alternatives, one that is permissive is enough.

    >>> sorted(licences_of("BSD-3-Clause AND (MIT OR GPL)"))
    ['BSD-3-Clause', 'MIT']
    """
    found = set()
    for part in re.split(r" AND |, ", statement):
        choices = re.sub(r"^\((.*)\)$", r"\1", part).split(" OR ")
        found.add(next((choice for choice in choices if choice in PERMISSIVE), choices[0]))
    return found


def bundled_libraries(distribution: Distribution) -> set[str]:
    """The libraries of others that a wheel carries, without versions: ``libx264``."""
    found = set()
    for file in distribution.files or ():
        library = re.match(r"(lib\w+?)[-.]", file.name)
        if library and ".so" in file.name and (file.parts[0].endswith(".libs") or library[1] in BUNDLED):
            found.add(library[1])
    return found


def to_markdown(found: dict[str, Distribution]) -> str:
    """Two tables: distributions by licence, and libraries inside wheels by licence."""
    by_licence: dict[str, list[str]] = {}
    inside: dict[tuple[str, str], list[str]] = {}
    for name, distribution in found.items():
        by_licence.setdefault(stated_licence(distribution), []).append(name)
        for library in sorted(bundled_libraries(distribution)):
            inside.setdefault((name, BUNDLED.get(library, "unknown")), []).append(library)
    rows = ["| Licence, as stated | Distributions |", "|---|---|"]
    rows += [f"| {licence} | {', '.join(names)} |" for licence, names in sorted(by_licence.items())]
    rows += ["", "| Wheel | Licence | Libraries inside |", "|---|---|---|"]
    rows += [f"| {name} | {licence} | {', '.join(names)} |" for (name, licence), names in sorted(inside.items())]
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write the tables into the page."""
    text, heading, _ = PAGE.read_text(encoding="utf-8").partition(TABLES)
    PAGE.write_text(text + heading + to_markdown(run_time_distributions()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
