"""Show what a dump folder holds, and the transformed code of one function.

python examples/show_dump.py DUMP_FOLDER FUNCTION
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Iterator


def tree(folder: Path, indent: str = "") -> Iterator[str]:
    """The files below a folder with their sizes in lines, as a tree."""
    entries = sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name))
    for position, path in enumerate(entries):
        last = position == len(entries) - 1
        branch = "└── " if last else "├── "
        if path.is_dir():
            yield f"{indent}{branch}{path.name}/"
            yield from tree(path, indent + ("    " if last else "│   "))
        else:
            lines = len(path.read_bytes().splitlines())
            yield f"{indent}{branch}{path.name}  ({lines} lines)"


def main(folder: Path, function: str) -> int:
    print(f"{folder}/")
    for line in tree(folder):
        print(line)
    found = sorted(folder.glob(f"__transformed_code_*_for_{function}.py"))
    if not found:
        print(f"no transformed code of {function} in {folder}", file=sys.stderr)
        return 1
    print(f"\n{found[0]}:\n")
    print(found[0].read_text().rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
