"""Measure decompiling and verifying by the shape of the code: an instruction must cost the same in all sizes.

    python benchmarks/shapes.py                                  # with the Python that runs it
    python benchmarks/shapes.py --python ~/3.13/bin/python3 --python ~/3.8/bin/python3
    python benchmarks/shapes.py --shapes 'elif|try' --sizes 1000,4000,16000
    python benchmarks/shapes.py --profile --shapes 'attribute chain'
    python benchmarks/shapes.py --lines                          # executed lines: the same on a busy machine
    python benchmarks/shapes.py --lines --profile --shapes 'state machine' --sizes 1000

``shape_sources.py`` defines the shapes. Each is measured in three sizes; nested shapes have a bound, which is their
largest size. Seconds are CPU seconds of ``decompile_code``, the least of several runs. ``ratio`` is the cost of an
instruction as a multiple of its cost in straight-line code of 1,000 instructions, measured in the same run. With
``--lines`` the cost is the number of executed lines of this package: the same in every run, but C code costs nothing.
The exit status is 1 if a ratio is above ``--most``.
"""

from __future__ import annotations

import argparse
import cProfile
import platform
import pstats
import re
import signal
import subprocess
import sys
import threading
import time
import types
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from shape_sources import SHAPES, Shape

import depyf
import depyf.decompiler.bytecode.lines
from depyf.decompiler import decompile_code, instruction_count
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.source.deep_stack import _in_deep_thread, with_deep_stack

SIZES = "1000,4000,16000"
REFERENCE = 1_000
MOST = 3.5
SHORT = 0.2
"""Seconds. Shorter runs are measured several times."""
PACKAGE = str(Path(depyf.__file__).parent)
LINE_TABLES = depyf.decompiler.bytecode.lines.__file__
"""Not counted: larger columns are longer numbers, so that one long line has more bytes for each instruction."""


@dataclass(frozen=True)
class Row:
    """One measurement."""

    shape: str
    copies: int
    instructions: int
    cost: float
    ratio: float
    verdict: str

    def __str__(self) -> str:
        return (
            f"{self.shape:<38}{self.copies:>8,}{self.instructions:>9,}{self.cost:>13,.3f}{self.ratio:>8.2f}"
            f"  {self.verdict}"
        )


def code_of(shape: Shape, copies: int) -> types.CodeType:
    """Return the function of a shape, or its module."""
    source = shape.source(copies)
    module = with_deep_stack(lambda: compile(source, "<shape>", "exec", dont_inherit=True))
    if not shape.header:
        return module
    return next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))


def weight(shape: Shape, code: types.CodeType) -> int:
    """Return the number of instructions of ``code``; each element of a folded constant counts."""
    return instruction_count(code) + sum(map(elements, code.co_consts)) if shape.folded else instruction_count(code)


def elements(constant: object) -> int:
    """Return the number of constants in a constant."""
    return sum(1 + elements(each) for each in constant) if isinstance(constant, (tuple, frozenset)) else 0


def of_size(shape: Shape, instructions: int) -> Tuple[int, types.CodeType]:
    """Return the code of a shape with about so many instructions, or as many as it can have."""
    few = min(60, max(1, shape.most // 2))
    less, more = weight(shape, code_of(shape, few)), weight(shape, code_of(shape, 2 * few))
    each = (more - less) / few
    copies = max(1, min(shape.most, round((instructions - less + each * few) / each)))
    return copies, code_of(shape, copies)


def sizes_of(shape: Shape, sizes: List[int]) -> Iterator[Tuple[int, types.CodeType]]:
    """Yield the sizes of a shape; if it can't be that large, its largest size and fractions of that."""
    copies, largest = of_size(shape, sizes[-1])
    total = weight(shape, largest)
    for wanted in sizes[:-1]:
        yield of_size(shape, wanted if copies < shape.most else wanted * total // sizes[-1])
    yield copies, largest


class TimeLimit(BaseException):
    """Not an ``Exception``, so that no handler in the decompiler catches it."""


def stop(_signal: int, _frame: object) -> None:
    raise TimeLimit


def cpu_seconds(code: types.CodeType, limit: float) -> Tuple[float, str]:
    """Return the CPU seconds to decompile and verify, the least of up to seven runs, and the verdict."""
    times: List[float] = []
    while not times or (sum(times) < SHORT and len(times) < 7):
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            verdict = decompile_code(code).verdict.value
        except DecompilationError as error:
            verdict = f"refused: {error}"
        except TimeLimit:
            verdict = f"not within {limit:g} s"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        times.append(time.process_time() - start)
    return min(times), verdict


def executed_lines(work: Callable[[], object]) -> Counter[types.CodeType]:
    """Return how many lines of each function of this package run in ``work``."""
    count: Counter[types.CodeType] = Counter()

    def called(frame: types.FrameType, event: str, argument: Any) -> Optional[Any]:
        function = frame.f_code
        if not function.co_filename.startswith(PACKAGE) or function.co_filename == LINE_TABLES:
            return None

        def inside(_frame: types.FrameType, event: str, argument: Any) -> Any:
            count[function] += event == "line"
            return inside

        return inside

    before = sys.gettrace()
    threading.settrace(called)  # what is nested deeply is worked on in another thread
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]
    return count


def line_count(code: types.CodeType, limit: float = 0) -> Tuple[float, str]:
    """Return the executed lines to decompile and verify, and the verdict. There is no limit."""
    verdict = decompile_code(code).verdict.value  # what is loaded and cached once does not count
    return sum(executed_lines(lambda: decompile_code(code)).values()), verdict


Cost = Callable[[types.CodeType, float], Tuple[float, str]]


def reference(cost: Cost) -> float:
    """Return the cost of an instruction in straight-line code."""
    _copies, code = of_size(SHAPES[0], REFERENCE)
    return cost(code, 60)[0] / instruction_count(code)


def rows_of(shape: Shape, sizes: List[int], limit: float, cost: Cost, unit: float) -> Iterator[Row]:
    """Yield the rows of a shape. Without ``unit``, the cost of the reference, that is measured again."""
    unit = unit or reference(cost)
    for copies, code in sizes_of(shape, sizes):
        count = weight(shape, code)
        total, verdict = cost(code, limit)
        yield Row(shape.name, copies, count, total, total / count / unit, verdict)


def table(shapes: List[Shape], sizes: List[int], most: float, limit: float, cost: Cost) -> int:
    """Print the table; return 1 when a ratio is above ``most``."""
    unit, of = reference(cost), "lines"
    if cost is cpu_seconds:
        unit, of = 1e6 * unit, "microseconds"
    print(f"CPython {platform.python_version()}: {unit:.1f} {of} an instruction of straight-line code")
    header = "lines" if cost is line_count else "CPU s"
    print(f"{'shape':<38}{'copies':>8}{'instr.':>9}{header:>13}{'ratio':>8}  verdict", flush=True)
    above = []
    for shape in shapes:
        for row in rows_of(shape, sizes, limit, cost, unit if cost is line_count else 0):
            print(row, flush=True)
            if row.ratio > most:
                above.append(row)
    print(f"{len(above)} above {most}")
    return int(bool(above))


def profile(shapes: List[Shape], sizes: List[int], lines: bool) -> None:
    """Print where the time of the largest size goes, or its executed lines."""
    for shape in shapes:
        copies, code = of_size(shape, sizes[-1])
        print(f"{shape.name}, {copies} copies")
        if lines:
            decompile_code(code)
            for function, count in executed_lines(lambda code=code: decompile_code(code)).most_common(40):  # type: ignore[misc]
                where = f"{Path(function.co_filename).relative_to(PACKAGE)}:{function.co_firstlineno}"
                print(f"{count / weight(shape, code):>9.2f} an instruction  {function.co_name:<28}{where}")
            continue
        profiler = cProfile.Profile()
        _in_deep_thread(lambda code=code, profiler=profiler: profiler.runcall(decompile_code, code))  # type: ignore[misc]
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="an interpreter (default: this one)")
    parser.add_argument("--shapes", default="", help="a regular expression: only shapes whose name it is found in")
    parser.add_argument("--sizes", default=SIZES, help=f"in instructions ({SIZES})")
    parser.add_argument("--most", type=float, default=MOST, help=f"the highest ratio that is no failure ({MOST})")
    parser.add_argument("--limit", type=float, default=60, help="CPU seconds for one code object (60)")
    parser.add_argument("--profile", action="store_true", help="where the time goes instead, for the largest size")
    parser.add_argument("--lines", action="store_true", help="count executed lines, not seconds")
    options = parser.parse_args()
    if options.python:
        rest = ["--shapes", options.shapes, "--sizes", options.sizes, "--most", str(options.most)]
        rest += ["--limit", str(options.limit)]
        rest += ["--profile"] * options.profile + ["--lines"] * options.lines
        return max(subprocess.call([python, __file__, *rest]) for python in options.python)
    shapes = [shape for shape in SHAPES if re.search(options.shapes, shape.name)]
    sizes = [int(each) for each in options.sizes.split(",")]
    if options.profile:
        profile(shapes, sizes, options.lines)
        return 0
    signal.signal(signal.SIGPROF, stop)
    return table(shapes, sizes, options.most, options.limit, line_count if options.lines else cpu_seconds)


if __name__ == "__main__":
    sys.exit(main())
