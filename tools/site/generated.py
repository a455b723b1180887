"""Write the parts of the documentation that come from the code: command line, Python interface, gallery.

    python tools/site/generated.py NAME      # prints one part: "command line", "Python interface", "gallery"

Needs Python 3.9 or later, and nothing else; the site's hooks call it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "build" / "gallery"
MARK = re.compile(r"^<!-- generated: ([\w ]+) -->$", re.MULTILINE)

QUESTIONS = "Questions about compiled code"
GROUPS: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("Dumping and stepping", ("prepare_debug", "debug", "install", "uninstall")),
    (
        QUESTIONS,
        ("why", "watch", "expect", "trace", "profile", "find_nonfinite", "compare", "shadow", "probe", "extract"),
    ),
    ("Decompiling", ("decompile", "decompile_code", "decompile_pyc", "Decompiler")),
    ("Results", ("Decompilation", "Verdict", "Hints", "DecompilationError", "ExpectationError")),
)
INTEGRATIONS = ("depyf.integrations.transformers.DepyfCallback", "depyf.integrations.lightning.DepyfCallback")


def _find_depyf() -> None:
    """Let ``depyf`` be imported from this tree, whatever is installed. MkDocs resets the path after loading hooks."""
    if str(ROOT / "src") not in sys.path:
        sys.path.insert(0, str(ROOT / "src"))


def commands() -> Iterator[Tuple[str, argparse.ArgumentParser]]:
    """Yield the name of each command with its parser, as ``depyf --help`` lists them."""
    _find_depyf()
    from depyf.cli import _parser

    parser = _parser()
    yield "depyf", parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield f"depyf {name}", command


def command_line(_: Path) -> str:
    """Return the help of every command."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    try:
        parts = [f"## {name}\n\n```text\n{parser.format_help().strip()}\n```\n" for name, parser in commands()]
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    return "\n".join(parts)


def python_interface(_: Path) -> str:
    """Return a directive of mkdocstrings for every public name."""
    _find_depyf()
    import depyf

    missing = {name for _, names in GROUPS for name in names} ^ set(depyf.__all__)
    if missing:
        raise ValueError(f"GROUPS in {__file__} and depyf.__all__ differ: {sorted(missing)}")
    lines: List[str] = []
    for title, names in GROUPS:
        lines += [f"## {title}", ""]
        for name in names:
            lines += _directive(f"{depyf._HOMES[name]}.{name}", f"depyf.{name}")
    lines += ["## Training frameworks", ""]
    for path in INTEGRATIONS:
        lines += _directive(path, path)
    return "\n".join(lines)


def _directive(path: str, name: str) -> List[str]:
    """Return the directive for the object at ``path``, which users call ``name``."""
    lines = [f"::: {path}", "    options:", f"      heading: {name}", f"      toc_label: {name}"]
    if name.split(".")[-1][0].isupper():
        lines += ["      members: true", '      filters: ["!^_"]']
    return [*lines, ""]


def gallery(folder: Path) -> str:
    """Return the table of the pages that ``make_gallery.py`` has written."""
    listed = folder / "gallery.json"
    if not listed.exists():
        raise FileNotFoundError(f"{listed} is missing: run tools/site/make_gallery.py first (`make docs` does)")
    rows = ["| Page | Program | What it compiled |", "|---|---|---|"]
    for each in json.loads(listed.read_text(encoding="utf-8")):
        rows.append(f"| [{each['title']}](gallery/{each['name']}.html) | {each['program']} | {each['headline']} |")
    return "\n".join(rows)


PARTS: Dict[str, Callable[[Path], str]] = {
    "command line": command_line,
    "Python interface": python_interface,
    "gallery": gallery,
}


def filled(text: str, folder: Path = GALLERY) -> str:
    """Return ``text`` with every mark replaced by its part."""
    return MARK.sub(lambda match: PARTS[match.group(1)](folder), text)


if __name__ == "__main__":
    print(PARTS[sys.argv[1]](GALLERY))
