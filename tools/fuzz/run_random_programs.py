"""Run random programs and their decompiled form, and compare what both do.

    python tools/fuzz/run_random_programs.py --kind syntax -n 10000 -j 2        # every kind of expression and statement
    python tools/fuzz/run_random_programs.py --kind programs -n 10000           # nested control flow
    python tools/fuzz/run_random_programs.py --kind conditions -n 10000         # and, or, not, ... wherever they stand
    python tools/fuzz/run_random_programs.py --kind finally -n 1000             # finally in finally, jumps in all
    python tools/fuzz/run_random_programs.py --kind flow -n 10000               # control flow that no compiler writes
    python tools/fuzz/run_random_programs.py --kind syntax -n 500 --seed 7 --store /tmp/failures

This is independent of the verifier: tests/support/random_checks.py runs the original and the decompiled code on the
same inputs and compares all their effects, in order. ``flow`` is assembled in the normal form and run by a small
interpreter (tests/support/interpreter.py). Hypothesis chooses the programs and shrinks failures; the smallest program
is stored in a folder that the tests check again (tests/decompiler/regressions). A refusal is counted, and is not a
failure. Exit status 0 when no program differs.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import random
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple
from typing import Counter as Counts

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import hypothesis
import random_checks
from hypothesis import strategies as st

BATCH = 100
"""The number of programs that hypothesis makes in one run; after a failure the next batch continues."""


@dataclass
class Tally:
    """The results of one batch, or of all of them."""

    outcomes: Counts[str] = field(default_factory=Counter)
    reasons: Counts[Tuple[str, str]] = field(default_factory=Counter)
    failures: List[random_checks.Difference] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.outcomes.update(other.outcomes)
        self.reasons.update(other.reasons)
        self.failures += other.failures

    @property
    def programs(self) -> int:
        return sum(count for outcome, count in self.outcomes.items() if outcome != "no program")

    def summary(self) -> str:
        parts = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        proved = self.outcomes["exact"] + self.outcomes["equivalent"]
        share = f", {100 * proved / self.programs:.1f}% proved" if self.programs else ""
        return f"{self.programs} programs: {parts}{share}; {len(self.failures)} differ"


def run_batch(job: Tuple[str, int, int]) -> Tally:
    """Check ``count`` programs from one seed. It ends with the first failure, shrunk."""
    kind, seed, count = job
    tally = Tally()
    # The programs cause many compiler warnings, and leave coroutines that were never awaited.
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _unraisable: None
    failure: Optional[random_checks.Difference] = None
    check = random_checks.CHECKS[kind]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(st.randoms(use_true_random=False))
    def examine(rng: random.Random) -> None:
        nonlocal failure
        try:
            verdict = check(rng)
        except random_checks.Difference as difference:
            failure = difference  # the last one is the smallest
            raise AssertionError(difference.what) from None
        if failure is None:  # else it is only being shrunk
            tally.outcomes[verdict.outcome] += 1
            if verdict.reason:
                tally.reasons[verdict.outcome, random_checks.group_of(verdict.reason)] += 1

    try:
        examine()
    except Exception as error:
        if failure is None:
            raise
        del error
        tally.failures.append(failure)
        tally.outcomes["DIFFERENT"] += 1
    return tally


def jobs(kind: str, count: int, seed: int) -> Iterator[Tuple[str, int, int]]:
    for first in range(0, count, BATCH):
        yield kind, seed * 1_000_003 + first, min(BATCH, count - first)


def store(folder: Path, kind: str, failure: random_checks.Difference) -> Path:
    """Write the program to the folder of the tests; its name is derived from its text."""
    suffix = random_checks.STORED[kind][0]
    digest = hashlib.sha256(failure.program.encode()).hexdigest()[:10]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kind}_{digest}{suffix}"
    path.write_text(failure.program)
    return path


def run(kind: str, count: int, seed: int, workers: int, folder: Path) -> Tally:
    """Run all programs of one kind, with a line of progress for every thousand."""
    total, start, reported = Tally(), time.perf_counter(), 0
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with context.Pool(workers, maxtasksperchild=5) as pool:
        for tally in pool.imap(run_batch, jobs(kind, count, seed)):
            total.add(tally)
            for failure in tally.failures:
                print(f"\n{store(folder, kind, failure)}\n{failure}\n", flush=True)
            if total.programs // 1000 > reported:
                reported = total.programs // 1000
                print(f"{kind}: {total.summary()} ({time.perf_counter() - start:.0f} s)", flush=True)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=[*random_checks.CHECKS, "all"], default="all")
    parser.add_argument("-n", "--count", type=int, default=10_000, help="programs of each kind (10,000)")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", type=Path, default=ROOT / "tests" / "decompiler" / "regressions", metavar="FOLDER")
    parser.add_argument("--top", type=int, default=5, help="reasons of what is not proved to show (5)")
    options = parser.parse_args()
    totals: Dict[str, Tally] = {}
    for kind in random_checks.CHECKS if options.kind == "all" else [options.kind]:
        start = time.perf_counter()
        total = totals[kind] = run(kind, options.count, options.seed, options.jobs, options.store)
        print(f"{kind}: {total.summary()}; {time.perf_counter() - start:.0f} s")
        for (outcome, reason), count in total.reasons.most_common(options.top):
            print(f"    {count:5}  {outcome}: {reason}")
    return 1 if any(total.failures for total in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
