"""Measure what depyf costs a long-lived process: many sessions, many compiled functions, several threads.

    python benchmarks/soak.py [PART ...] [--size 1.0] [--profile]

Each part runs in a separate process, with depyf and without:

- ``directories``: 300 sessions of one compiled function, each into its own directory
- ``one_directory``: 300 sessions of one compiled function into one directory
- ``functions``: one session of 2,000 compiled functions, and what leaving it costs
- ``threads``: 4 threads that compile 20 functions each, every thread with its own session, at the same time

A curve is the cost of each tenth of the work, in CPU milliseconds a function (or session), divided by that of the first
tenth; flat is 1.0. Resident memory is in MiB. The cost of leaving is divided by the number of functions. Objects are
those that the garbage collector tracks, as how many more there are than after the first tenth, for each function (or
session) since; pages are the sizes of ``index.html``, ``index.md`` and ``manifest.json`` in KiB, of ``one_directory``.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import os
import pstats
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, ContextManager, Dict, List

PARTS = {"directories": 300, "one_directory": 300, "functions": 2000, "threads": 20}
THREADS = 4


def function_number(number: int) -> Callable[[Any], Any]:
    """Return a unique function with its own code."""
    scope: Dict[str, Any] = {}
    exec(compile(f"def f{number}(x):\n    return x * 2 + {number}\n", f"<function {number}>", "exec"), scope)
    function: Callable[[Any], Any] = scope[f"f{number}"]
    return function


def descriptors() -> int:
    """Return how many descriptors are open; -1 if the system does not report it."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return -1


def resident() -> float:
    """Return the resident memory in MiB; -1 if the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return -1.0


def page_sizes(directory: str) -> List[int]:
    """Return the KiB of the files that summarize a dump; 0 for one that is not there."""
    paths = [os.path.join(directory, name) for name in ("index.html", "index.md", "manifest.json")]
    return [os.path.getsize(path) // 1024 if os.path.exists(path) else 0 for path in paths]


class Curve:
    """CPU seconds, memory and descriptors, recorded after each unit of work; objects and pages, after each tenth."""

    def __init__(self, count: int, directory: str) -> None:
        self.seconds: List[float] = []
        self.memory = [resident()]
        self.descriptors = [descriptors()]
        self.objects: List[int] = []
        self.pages: List[List[int]] = []
        self._tenth = max(1, count // 10)
        self._directory = directory
        self._last = time.process_time()

    def note(self) -> None:
        self.seconds.append(time.process_time() - self._last)
        self.memory.append(resident())
        self.descriptors.append(descriptors())
        if not len(self.seconds) % self._tenth:
            gc.collect()
            self.objects.append(len(gc.get_objects()))
            self.pages.append(page_sizes(self._directory))
        self._last = time.process_time()

    def objects_each(self) -> List[float]:
        """Return how many objects each unit left since the first tenth."""
        return [(each - self.objects[0]) / (at * self._tenth) for at, each in enumerate(self.objects) if at]

    def tenths(self) -> List[float]:
        """Return the mean CPU milliseconds of each tenth of the units."""
        size = max(1, len(self.seconds) // 10)
        parts = [self.seconds[start : start + size] for start in range(0, len(self.seconds) - size + 1, size)]
        return [1000 * sum(part) / len(part) for part in parts[:10]]


def measured(part: str, count: int, with_depyf: bool) -> Dict[str, Any]:
    """Run one part in this process and return what it cost."""
    import torch

    import depyf

    x = torch.ones(4)

    def compiled(number: int) -> None:
        torch.compile(function_number(number), backend="eager")(x)

    with tempfile.TemporaryDirectory() as root:

        def session(name: str) -> ContextManager[object]:
            return depyf.prepare_debug(os.path.join(root, name))

        with session("warm") if with_depyf else tempfile.TemporaryDirectory():
            compiled(10**6)  # imports
        units = count * THREADS if part == "threads" else count
        curve, leaving = Curve(units, os.path.join(root, "one")), 0.0
        if part in ("directories", "one_directory"):
            for number in range(count):
                if with_depyf:
                    with session(f"s{number}" if part == "directories" else "one"):
                        compiled(number)
                else:
                    compiled(number)
                curve.note()
        elif part == "functions":
            if with_depyf:
                with session("one"):
                    for number in range(count):
                        compiled(number)
                        curve.note()
                    begun = time.process_time()
                leaving = (time.process_time() - begun) / count
            else:
                for number in range(count):
                    compiled(number)
                    curve.note()
        else:
            _in_threads(count, lambda name: session(name) if with_depyf else None, compiled, curve)
        return {
            "unit": curve.tenths(),
            "total": sum(curve.seconds),
            "leaving": leaving * 1000,
            "memory": curve.memory[:: max(1, len(curve.memory) // 10)],
            "descriptors": curve.descriptors[:: max(1, len(curve.descriptors) // 10)],
            "objects": curve.objects_each(),
            "pages": curve.pages,
        }


def _in_threads(count: int, session: Callable[[str], Any], compiled: Callable[[int], None], curve: Curve) -> None:
    lock = threading.Lock()
    failures: List[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(count):
                opened = session(f"t{thread}_{number}")
                if opened is not None:
                    opened.__enter__()
                try:
                    compiled(thread * count + number)
                finally:
                    if opened is not None:
                        opened.__exit__(None, None, None)
                with lock:
                    curve.note()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def child(part: str, count: int, with_depyf: bool, profile: str) -> Dict[str, Any]:
    """Run one part in a separate process."""
    command = [sys.executable, __file__, part, "--count", str(count), "--child"]
    command += [] if with_depyf else ["--without"]
    command += ["--profile", profile] if profile else []
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: Dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(part: str, count: int, with_depyf: bool, found: Dict[str, Any]) -> None:
    curve = " ".join(f"{each / found['unit'][0]:5.2f}" for each in found["unit"])
    memory = found["memory"]
    print(f"{part} x {count}, {'with depyf' if with_depyf else 'without'}: {found['total']:.1f} s of CPU")
    print(f"    each tenth (first: {found['unit'][0]:6.1f} ms)  {curve}")
    if found["leaving"]:
        print(f"    leaving: {found['leaving']:.2f} ms a function")
    print("    resident MiB              ", " ".join(f"{each:5.0f}" for each in memory))
    print("    descriptors               ", " ".join(f"{each:5}" for each in found["descriptors"]))
    print("    objects of each since 1st ", " ".join(f"{each:5.1f}" for each in found["objects"]))
    for name, sizes in zip(("index.html", "index.md", "manifest.json"), zip(*found["pages"])):
        if any(sizes):
            print(f"    {name + ' KiB':26}", " ".join(f"{each:5}" for each in sizes))
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)} (all of them)")
    parser.add_argument("--size", type=float, default=1.0, help="multiply the numbers of sessions and functions")
    parser.add_argument("--count", type=int, help="use this number of sessions or functions")
    parser.add_argument("--profile", default="", metavar="FILE", help="write what cProfile says of the run with depyf")
    parser.add_argument("--with-only", action="store_true", help="do not run it without depyf as well")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--without", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for part in options.parts or PARTS:
        count = options.count or max(10, int(PARTS[part] * options.size))
        if options.child:
            profiler = cProfile.Profile()
            if options.profile:
                profiler.enable()
            found = measured(part, count, not options.without)
            profiler.disable()
            if options.profile:
                profiler.dump_stats(options.profile)
                pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(25)
            print(json.dumps(found))
            continue
        for with_depyf in (True,) if options.with_only else (False, True):
            show(part, count, with_depyf, child(part, count, with_depyf, options.profile if with_depyf else ""))


if __name__ == "__main__":
    main()
