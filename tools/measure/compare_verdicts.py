"""List the verdicts that the standard library of this Python has lost or won between two checkouts of depyf.

    python3.13 tools/measure/compare_verdicts.py ../before .                  # all modules below 60 kB
    python3.13 tools/measure/compare_verdicts.py ../before . --below 10 -j 2  # below 10 kB
    python3.13 tools/measure/compare_verdicts.py ../before . --sample 0.2     # a fifth of their code objects
    python3.13 tools/measure/compare_verdicts.py ../before . --keep rows.json # the rows of ../before are kept there,
    python3.13 tools/measure/compare_verdicts.py rows.json .                  # and take its place, with its options

Each checkout sweeps the same files (``depyf sweep --json``) in a process of its own. ``exact`` that became
``equivalent`` is lost, too. Exit status 0 when nothing is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Tuple

ORDER = ("exact", "equivalent", "placeholders", "unverified", "refused", "different", "crashed")
Rows = Dict[Tuple[str, int, str], Dict[str, Any]]


def modules(below: int) -> List[Path]:
    """Return the files of the standard library with fewer than ``below`` bytes, without tests."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    left_out = {"site-packages", "test", "tests", "idle_test"}
    files = [file for file in folder.rglob("*.py") if not left_out & {*file.relative_to(folder).parts}]
    return sorted(file for file in files if file.stat().st_size < below)


def swept(checkout: Path, files: List[Path], options: argparse.Namespace) -> Rows:
    """Return the rows that ``depyf sweep`` of ``checkout`` writes for ``files``."""
    if checkout.is_file():
        return read(checkout)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "depyf", "sweep", "-j", str(options.jobs), "--sample", str(options.sample)]
        command += ["--top", "1", "--list", "1", "--json", str(written), *map(str, files)]
        environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
        if not written.exists():
            raise SystemExit(f"{checkout}: the sweep wrote nothing\n{done.stdout}")
        return read(written)


def read(file: Path) -> Rows:
    """Return the rows that ``depyf sweep --json`` wrote to ``file``."""
    rows = json.loads(file.read_text())["objects"]
    return {(row["path"], row["ordinal"], row["qualname"]): row for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of depyf, or its rows")
    parser.add_argument("after", type=Path, help="another one")
    parser.add_argument("--below", type=float, default=60, metavar="KB", help="leave out larger files (60)")
    parser.add_argument("--sample", type=float, default=1.0, help="a share of the code objects (1)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the rows of the first checkout")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    options = parser.parse_args()
    files = modules(int(1000 * options.below))
    before = swept(options.before, files, options)
    if options.keep:
        options.keep.write_text(json.dumps({"objects": list(before.values())}))
    after = swept(options.after, files, options)
    changes: Dict[str, List[str]] = {"lost": [], "won": []}
    for key in sorted(before.keys() & after.keys()):
        old, new = before[key]["outcome"], after[key]["outcome"]
        if old != new:
            kind = "lost" if ORDER.index(new) > ORDER.index(old) else "won"
            reason = (after[key]["reason"] or before[key]["reason"]).split("\n", 1)[0]
            changes[kind].append(f"{kind}: {key[0]}:{before[key]['line']} {key[2]}: {old} -> {new}  {reason}")
    for line in changes["won"] + changes["lost"]:
        print(line)
    both = len(before.keys() & after.keys())
    print(f"{len(files)} files, {both} code objects: {len(changes['won'])} won, {len(changes['lost'])} lost")
    return 1 if changes["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
