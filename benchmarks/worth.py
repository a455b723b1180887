"""Measure whether ``depyf.profile`` decides as the clock does: ten regions, the decision and the break-even.

    python benchmarks/worth.py [--regions 'pointwise|attention'] [--repeats 3] [--clock cpu] [--seconds 60]

For each region (``worth_regions.py``) there are three fresh processes, with one thread. One calls ``depyf.profile``. Of
the others, one calls the region compiled and one eagerly, without depyf: the blocks of their calls alternate, and what
each call took is added up, compiling included, until the compiled process has caught up with the eager one. The number
of calls at that point is the measured break-even. Where it isn't reached in ``--seconds``, it is computed from the
median of the blocks. Importing PyTorch doesn't count; loading its compiler (``import torch._dynamo``, Inductor's
modules) is a column of its own, as a process pays for it once, for all that it compiles.

``--caches cold``: each process has an empty cache of Inductor's. ``warm``: the process that calls the region compiled
finds the cache that another such process has filled, and so does the one that calls ``depyf.profile``. Each repeat has
a row. With ``--clock cpu`` all clocks count the CPU seconds of the process and of its compilers, so that other programs
on the machine change little: with one thread this is the time on an idle machine. The exit status is 1 if a decision
differs.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

HERE = Path(__file__).resolve().parent
BLOCK = 0.05
"""Seconds of one block of calls."""
FIRST = 8
"""So many calls are blocks of their own: compiling, and what else happens once."""


def count_cpu_seconds() -> None:
    """Replace the clocks of Python by the CPU seconds of this process and of the compilers that it has started."""
    start = time.time_ns()

    def nanoseconds() -> int:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time_ns() + round(1e9 * (children.ru_utime + children.ru_stime))

    time.perf_counter = lambda: nanoseconds() * 1e-9
    time.perf_counter_ns = nanoseconds
    time.time_ns = lambda: start + nanoseconds()
    time.time = lambda: (start + nanoseconds()) * 1e-9


def region_call(name: str, way: str) -> Any:
    """Return a function that makes one call of the region."""
    import torch
    from worth_regions import REGIONS

    torch.manual_seed(0)
    region = REGIONS[name]
    arguments = region.arguments()
    if way == "depyf":
        return functools.partial(region.function, *arguments)
    function = torch.compile(region.function) if way == "compiled" else region.function
    return functools.partial(function, *arguments)


def serve(name: str, way: str) -> None:
    """Make as many calls as each line of the input says; print the seconds of each block."""
    import torch

    begun = time.perf_counter()
    if way == "compiled":
        import torch._dynamo
        import torch._inductor.compile_fx  # noqa: F401
    print(time.perf_counter() - begun, flush=True)
    call = region_call(name, way)
    for text in sys.stdin:
        begun = time.perf_counter()
        for _ in range(int(text)):
            call()
        print(time.perf_counter() - begun, flush=True)


def profile(name: str) -> None:
    """Print what ``depyf.profile`` says of the region."""
    import depyf

    call = region_call(name, "depyf")
    found = depyf.profile(call.func, *call.args)
    print(json.dumps({**found.to_dict()["eager"], "text": found.worth()}))


@dataclass
class Measured:
    """What the clock says: seconds of a call of both kinds, of compiling, and the calls that pay that back."""

    compiled: float
    eager: float
    compiling: float
    loading: float
    calls: Optional[float]
    reached: bool

    @property
    def ratio(self) -> float:
        return self.eager / self.compiled

    @property
    def decision(self) -> str:
        return "faster" if self.ratio > 1 else "slower"


class Child:
    """A process that calls the region, with the calls that it has made and the seconds that these took."""

    def __init__(self, name: str, way: str, caches: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, way],
            env=environment(caches),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.loading = self._answer()
        self.calls = 0
        self.blocks: List[float] = []
        """Seconds of a call, for each block after the first calls."""
        self.times = [0.0]
        """The seconds after each block, beginning with those after no call; ``ends`` are the calls made until then."""
        self.ends = [0]

    def _answer(self) -> float:
        assert self._process.stdout is not None
        return float(self._process.stdout.readline())

    def run(self, calls: int) -> None:
        """Make calls."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()
        took = self._answer()
        self.calls += calls
        self.times.append(self.times[-1] + took)
        self.ends.append(self.calls)
        if self.calls > FIRST:
            self.blocks.append(took / calls)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    @property
    def median(self) -> float:
        return statistics.median(self.blocks)

    @property
    def once(self) -> float:
        """The seconds of the first calls beyond what later calls take."""
        return self.times[FIRST] - FIRST * self.median


def environment(caches: str) -> Dict[str, str]:
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        # glibc gives a large tensor back to the system when it is freed, or keeps it, as else the heap is: eager calls
        # of the same program take three times as long with one as with the other. Here it always keeps it.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(2**34),
        "MALLOC_TOP_PAD_": str(2**26),
        "TORCHINDUCTOR_CACHE_DIR": caches,
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no workers, whose CPU seconds would not be counted
        "PYTHONPATH": os.pathsep.join([str(HERE.parent / "src"), str(HERE), os.environ.get("PYTHONPATH", "")]),
    }


@contextlib.contextmanager
def pair(name: str, caches: str) -> Iterator[List[Child]]:
    children: List[Child] = []
    try:
        for way in ("compiled", "eager"):
            children.append(Child(name, way, caches))
        yield children
    finally:
        for child in children:
            child.close()


def measured(name: str, caches: str, seconds: float) -> Measured:
    """Call the region in both ways until compiling has paid, or for some seconds."""
    with pair(name, caches) as (compiled, eager):
        for child in (compiled, eager):
            for _ in range(FIRST):
                child.run(1)
            child.run(3)
        size = max(1, round(BLOCK / max(compiled.blocks[0], eager.blocks[0])))
        begun = time.perf_counter()
        crossed = None
        while crossed is None:
            for child in (compiled, eager) if len(eager.blocks) % 2 else (eager, compiled):
                child.run(size)
            spent = time.perf_counter() - begun
            crossed = crossing(compiled, eager)
            enough = spent > 5.0 and compiled.median > eager.median
            if spent > seconds or enough:
                break
        saved = eager.median - compiled.median
        computed = (compiled.once - eager.once) / saved if saved > 0 else None
        return Measured(
            compiled=compiled.median,
            eager=eager.median,
            compiling=compiled.once - eager.once,
            loading=compiled.loading - eager.loading,
            calls=computed if crossed is None else crossed,
            reached=crossed is not None,
        )


def crossing(compiled: Child, eager: Child) -> Optional[float]:
    """Return the number of calls at which both have taken as long; the ends of the blocks are the same in both."""
    behind = [one - other for one, other in zip(compiled.times, eager.times)]
    if behind[-1] > 0:
        return None
    at = max(number for number, each in enumerate(behind) if each > 0)
    part = behind[at] / (behind[at] - behind[at + 1])
    return compiled.ends[at] + part * (compiled.ends[at + 1] - compiled.ends[at])


def profiled(name: str, caches: str) -> Dict[str, Any]:
    command = [sys.executable, __file__, "--profile", name]
    done = subprocess.run(command, env=environment(caches), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: Dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(name: str, arguments: argparse.Namespace) -> bool:
    """Print the rows of a region; return whether all decide alike."""
    clock: List[Measured] = []
    answers: List[Dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory:
        if arguments.caches == "warm":
            with pair(name, directory) as (compiled, _):
                for _ in range(FIRST):
                    compiled.run(1)
        for number in range(arguments.repeats):
            caches = directory if arguments.caches == "warm" else os.path.join(directory, str(number))
            clock.append(measured(name, caches, arguments.seconds))
            answers.append(profiled(name, caches if arguments.caches == "warm" else os.path.join(caches, "depyf")))
            show(name, clock[-1], answers[-1])
    return {each["decision"] for each in answers} == {each.decision for each in clock}


def show(name: str, clock: Measured, answer: Dict[str, Any]) -> None:
    calls, said = clock.calls, answer["break_even"]
    off = f"{100 * (said / calls - 1):+.0f} %" if calls and said else ""
    row = (
        name,
        f"{clock.eager * 1e6:.1f}, {clock.compiled * 1e6:.1f}",
        f"{answer['eager']['median'] * 1e6:.1f}, {answer['compiled']['median'] * 1e6:.1f}",
        f"{clock.ratio:.2f}",
        f"{answer['decision']} {answer['ratio']:.2f} ({answer['ratio_low']:.2f} to {answer['ratio_high']:.2f})",
        f"{clock.loading:.2f}",
        f"{clock.compiling:.2f}, {answer['compile_seconds']:.2f}",
        "" if calls is None else f"{calls:.0f}{'' if clock.reached else ' (computed)'}",
        str(said or ""),
        off,
    )
    print(f"| {' | '.join(row)} |", flush=True)


def main() -> int:
    sys.path.insert(0, str(HERE))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regions", default="")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--caches", choices=("cold", "warm"), default="cold")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clock", choices=("wall", "cpu"), default=os.environ.get("WORTH_CLOCK", "wall"))
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--profile", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["WORTH_CLOCK"] = arguments.clock
    if arguments.clock == "cpu" and (arguments.serve or arguments.profile):
        count_cpu_seconds()
    if arguments.serve:
        serve(*arguments.serve)
        return 0
    if arguments.profile:
        profile(arguments.profile)
        return 0
    from worth_regions import REGIONS

    print("| region | eager, compiled (us) | by depyf | ratio | by depyf | loading (s) | compiling, by depyf (s) "
          "| break-even | by depyf | off |\n|" + "---|" * 10)  # fmt: skip
    agree = [compare(name, arguments) for name in REGIONS if re.search(arguments.regions, name)]
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
