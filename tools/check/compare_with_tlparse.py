"""Compare what ``depyf report`` and ``tlparse`` read from the same logs: compile ids, graph breaks, recompilations, and
whether each text that tlparse shows is on the page.

    python tools/check/compare_with_tlparse.py --tlparse PATH LOG...

``tlparse`` (``pip install tlparse``, in a separate environment) is run unchanged, and its output is counted. A call
that hit the recompile limit is a recompilation there, and a fallback to eager here, as nothing was compiled for it:
these are compared by themselves. Exit status 1 when the results differ.
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

from depyf.diagnosis.break_advice import is_raised_limit
from depyf.report.model.counts import LIMIT
from depyf.report.model.run import Fallback
from depyf.report.read.reading import load
from depyf.torch_trace.log_file import log_lines

Facts = Dict[str, List[str]]

SHOWN = "torch_version"
"""On the page as a fact, without its text."""

_ATTEMPT = re.compile(r"_\d+$")


def said_by_depyf(log: str) -> Facts:
    """Return the compile ids of breaks and recompilations according to depyf."""
    run = load([log])[0].run
    return {
        "compile ids": sorted(each.compile_id for each in run.compilations),
        "graph breaks": sorted(str(each.compile_id) for each in run.breaks),
        "recompiles": sorted(each.compile_id for each in run.recompiles),
        "at the limit": sorted(str(each.compile_id) for each in run.fallbacks if hit_limit(each)),
        "texts": [plain(str(each.text or "")) for each in run.artifacts],
    }


def hit_limit(fallback: Fallback) -> bool:
    return fallback.cause == LIMIT or is_raised_limit(fallback.reason)


def said_by_tlparse(log: str, program: str) -> Facts:
    """Return the same from the directory that tlparse writes: each compile id has a list of artifacts."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder, "plain.log")
        unpacked.write_text("".join(f"{line}\n" for line in log_lines(log)), encoding="utf-8")
        out = Path(folder, "out")
        subprocess.run([program, str(unpacked), "-o", str(out), "--no-browser"], check=True, capture_output=True)
        found = json.loads((out / "compile_directory.json").read_text())
        texts = {
            f"{name} {artifact['name']}": plain((out / artifact["url"]).read_text(encoding="utf-8"))
            for name, entry in found.items()
            for artifact in entry["artifacts"]
            if Path(artifact["url"]).suffix != ".html" and not artifact["name"].startswith(SHOWN)
        }
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
        "texts": [f"{name}\0{text}" for name, text in sorted(texts.items())],
    }


def plain(text: str) -> str:
    """A text without what tlparse changes: white space at its ends, and the layout of JSON."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tlparse", default="tlparse", metavar="PATH")
    parser.add_argument("logs", nargs="+", metavar="LOG")
    options = parser.parse_args()
    same = True
    for log in options.logs:
        ours, theirs = said_by_depyf(log), said_by_tlparse(log, options.tlparse)
        limited = set(ours["at the limit"])
        theirs["at the limit"] = [each for each in theirs["recompiles"] if each in limited]
        theirs["recompiles"] = [each for each in theirs["recompiles"] if each not in limited]
        print(Path(log).name)
        known, named = set(ours.pop("texts")), [each.split("\0", 1) for each in theirs.pop("texts")]
        named = [(name, text) for name, text in named if text]
        missing = [name for name, text in named if text not in known]
        same = same and not missing
        print(
            f"  {'texts':<14} {len(named) - len(missing)} of {len(named)} are on the page",
            f"not: {', '.join(missing)}" if missing else "",
        )
        for what in ours:
            agrees = ours[what] == theirs[what]
            same = same and agrees
            print(f"  {what:<14} {'same' if agrees else 'DIFFERENT'}: {' '.join(ours[what]) or 'none'}")
            if not agrees:
                print(f"  {'':<14} tlparse: {' '.join(theirs[what]) or 'none'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
