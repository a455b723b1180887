"""Simulate the dumps of many ranks from recorded runs, and measure what a report over all of them takes.

    python benchmarks/many_ranks.py                       # 1,000 ranks of the logs that the tests have
    python benchmarks/many_ranks.py --dump DIR --other DIR  # of two dumps (prepare_debug) of your own

All ranks are copies of one recorded run with compile times that vary by 5 %. Three are stragglers (four times as slow),
and one is a copy of the other run. Each "rank" writes its manifest, and from that its summary.

Writes into a temporary directory (--keep DIR keeps it). Prints CPU seconds and the peak memory of a process that reads
all of it: from the summaries, from the dumps without summaries, and with every dump read whole.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import List, Optional, Sequence

from depyf.report.diff.rank_summary import summary_json, summary_of
from depyf.report.model.manifest import to_json
from depyf.report.model.run import Run
from depyf.report.read.reading import Loaded, load

LOGS = Path(__file__).resolve().parent.parent / "tests" / "report" / "logs" / "ranks"

_READ_ALL_WHOLE = "from depyf.report.read.reading import load; import sys; load([sys.argv[1]])"


def slower(run: Run, factor: float) -> Run:
    """Return the run with compile times multiplied."""

    def times(seconds: Optional[float]) -> Optional[float]:
        return None if seconds is None else seconds * factor

    compilations = tuple(
        replace(each, seconds=times(each.seconds), backward_seconds=times(each.backward_seconds))
        for each in run.compilations
    )
    phases = tuple(replace(each, seconds=each.seconds * factor, start=each.start * factor) for each in run.phases)
    return replace(run, compilations=compilations, phases=phases)


def whole(loaded: Loaded) -> Run:
    """Return the run with all texts in it."""
    artifacts = tuple(replace(each, text=loaded.text_of(each), path=None) for each in loaded.run.artifacts)
    return replace(loaded.run, artifacts=artifacts)


def write_ranks(root: Path, count: int, usual: Run, other: Run, stragglers: Sequence[int], odd: int) -> List[float]:
    """Write a folder for each rank; return the CPU seconds that each took for its summary, reading included."""
    vary = random.Random(2026)
    spent = []
    for rank in range(count):
        factor = vary.uniform(0.95, 1.05) * (4.0 if rank in stragglers else 1.0)
        folder = root / f"rank{rank}"
        folder.mkdir(parents=True)
        run = replace(slower(other if rank == odd else usual, factor), rank=rank)
        (folder / "manifest.json").write_text(to_json(run), encoding="utf-8")
        begun = time.process_time()
        (loaded,) = load([str(folder)])
        text = summary_json(summary_of(loaded.side))
        spent.append(time.process_time() - begun)
        (folder / "rank_summary.json").write_text(text, encoding="utf-8")
    return spent


def measured(*arguments: str) -> str:
    """Run Python, and return its CPU seconds, its peak memory and what it printed last."""
    program = (
        "import resource, subprocess, sys;"
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True, check=True);"
        "spent = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(f'{spent.ru_utime + spent.ru_stime:.2f} s of CPU, {spent.ru_maxrss / 1024:.0f} MB');"
        "print(done.stdout)"
    )
    command = [sys.executable, "-c", program, sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--ranks", type=int, default=1000)
    parser.add_argument("--dump", help="the usual run (of a log of the tests)")
    parser.add_argument("--other", help="the run of the rank that compiles something else")
    parser.add_argument("--keep", metavar="DIR", help="write the ranks there, and leave them")
    options = parser.parse_args()
    paths = (
        [options.dump, options.other] if options.dump and options.other else [str(p) for p in sorted(LOGS.iterdir())]
    )
    usual, other = (whole(load([path])[0]) for path in paths)
    root = Path(options.keep or tempfile.mkdtemp(prefix="depyf_many_ranks_"))
    stragglers = [options.ranks * part // 1000 for part in (17, 404, 900)]
    odd = options.ranks * 777 // 1000
    try:
        spent = write_ranks(root, options.ranks, usual, other, stragglers, odd)
        sizes = [path.stat().st_size for path in root.glob("*/rank_summary.json")]
        manifests = [path.stat().st_size for path in root.glob("*/manifest.json")]
        print(f"{options.ranks} ranks; planted: stragglers {stragglers}, another program on {odd}")
        print(f"a rank: manifest {max(manifests) / 1e3:.1f} kB, summary {max(sizes) / 1e3:.1f} kB at most, written")
        print(f"  in {1000 * sorted(spent)[len(spent) // 2]:.1f} ms of CPU (median, with reading the manifest)")
        print("depyf report, from summaries:", measured("-m", "depyf", "report", str(root)))
        print(f"  page {(root / 'index.html').stat().st_size / 1e3:.0f} kB")
        for path in root.glob("*/rank_summary.json"):
            path.unlink()
        print("the same without summaries:", measured("-m", "depyf", "report", str(root)).splitlines()[0])
        print("every dump read whole (without a page):", measured("-c", _READ_ALL_WHOLE, str(root)).splitlines()[0])
        print(f"(this program: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB)")
    finally:
        if not options.keep:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
