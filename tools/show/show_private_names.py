"""Print the private names of PyTorch that depyf relies on, and whether the installed PyTorch has them.

    python tools/show/show_private_names.py             # the table; the exit status is 1 if something is missing
    python tools/show/show_private_names.py --missing   # names that are missing, or exist although they should not

A row has the name, the releases in which it is expected, whether it exists, what is lost without it, and the modules of
depyf that use it. With a new PyTorch, rows that are ``MISSING`` show what it has renamed. A name that exists outside of
its releases is ``early`` or ``late``: its row must be corrected (``dynamo/hooks/private_names.py``).
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Dict, List

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from depyf.dynamo.hooks.private_names import table  # noqa: E402
from depyf.dynamo.hooks.torch_names import PrivateName, torch_version  # noqa: E402


def users() -> Dict[str, List[str]]:
    """Return the modules under ``dynamo/`` that use each constant of the table."""
    found: Dict[str, List[str]] = {constant: [] for constant, _ in table()}
    folder = ROOT / "src" / "depyf" / "dynamo"
    for path in sorted(folder.rglob("*.py")):
        names = set(re.findall(r"\bprivate_names\.([A-Z_]+)\b", path.read_text(encoding="utf-8")))
        for constant in names & found.keys():
            found[constant].append(path.relative_to(folder).with_suffix("").as_posix())
    return found


def state_of(row: PrivateName, version: str) -> str:
    """Return whether the row is right: ``there``, ``not there``, ``MISSING``, ``early`` or ``late``. A word in a text
    may exist for other reasons: it is never early or late."""
    expected = row.is_expected(version)
    if row.resolves():
        return "there" if expected or row.in_text else ("late" if row.until else "early")
    return "MISSING" if expected else "not there"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", action="store_true", help="only rows that are not as the table says")
    given = parser.parse_args()
    import torch  # noqa: F401 - its version is asked for

    version, used = torch_version(), users()
    states = [(constant, row, state_of(row, version)) for constant, row in table()]
    for constant, row, state in states:
        if given.missing and state in ("there", "not there"):
            continue
        until = f" to {row.until}" if row.until else ""
        print(f"{state:9} {row.whole}  ({row.since}{until})")
        print(f"          {constant}, without it: {row.lost}. Used by {', '.join(used[constant]) or 'nothing'}")
    wrong = [row.whole for _, row, state in states if state in ("MISSING", "early", "late")]
    print(f"PyTorch {version}: {len(states)} names, {len(wrong)} not as the table says", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
