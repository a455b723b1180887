"""What ``depyf report`` and ``tlparse`` say of the same logs: compile ids, graph breaks, recompilations.

    python tools/check/compare_with_tlparse.py --tlparse PATH LOG...

``tlparse`` (``pip install tlparse``, in an environment of its own) is run as it is; what it wrote is counted. Exit
status 1 when they say different things.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Counter as CounterType
from typing import Dict, List

from depyf.report.read.reading import load
from depyf.torch_trace.log_file import log_lines

Facts = Dict[str, List[str]]

_ATTEMPT = re.compile(r"_\d+$")


def said_by_depyf(log: str) -> Facts:
    """Of each break and recompilation the compile id."""
    run = load([log])[0].run
    return {
        "compile ids": sorted(each.compile_id for each in run.compilations),
        "graph breaks": sorted(str(each.compile_id) for each in run.breaks),
        "recompiles": sorted(each.compile_id for each in run.recompiles),
    }


def said_by_tlparse(log: str, program: str) -> Facts:
    """The same from the directory that it writes: each compile id has a list of artifacts."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain.log")
        plain.write_text("".join(f"{line}\n" for line in log_lines(log)), encoding="utf-8")
        out = Path(folder, "out")
        subprocess.run([program, str(plain), "-o", str(out), "--no-browser"], check=True, capture_output=True)
        found = json.loads((out / "compile_directory.json").read_text())
    ids = set()
    breaks: CounterType[str] = Counter()
    recompiles: CounterType[str] = Counter()
    for name, entry in found.items():
        compile_id = _ATTEMPT.sub("", name.strip("[]"))
        if "-" in compile_id:
            continue
        ids.add(compile_id)
        for artifact in entry["artifacts"]:
            breaks[compile_id] += artifact["name"].startswith("dynamo_graph_break_reason")
            recompiles[compile_id] += artifact["name"].startswith("recompile_reasons")
    return {
        "compile ids": sorted(ids),
        "graph breaks": sorted(breaks.elements()),
        "recompiles": sorted(recompiles.elements()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tlparse", default="tlparse", metavar="PATH")
    parser.add_argument("logs", nargs="+", metavar="LOG")
    options = parser.parse_args()
    same = True
    for log in options.logs:
        ours, theirs = said_by_depyf(log), said_by_tlparse(log, options.tlparse)
        print(Path(log).name)
        for what in ours:
            agrees = ours[what] == theirs[what]
            same = same and agrees
            print(f"  {what:<14} {'same' if agrees else 'DIFFERENT'}: {' '.join(ours[what]) or 'none'}")
            if not agrees:
                print(f"  {'':<14} tlparse: {' '.join(theirs[what]) or 'none'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
