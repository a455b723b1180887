"""What decompiling and verifying costs by the shape of the code: an instruction must cost the same in all sizes.

    python benchmarks/shapes.py                                  # with the Python that runs it
    python benchmarks/shapes.py --python ~/3.13/bin/python3 --python ~/3.8/bin/python3
    python benchmarks/shapes.py --shapes 'elif|try' --sizes 1000,4000,16000
    python benchmarks/shapes.py --profile --shapes 'attribute chain'

``shape_sources.py`` holds the shapes. Each is measured in three sizes; what is nested has a bound, which is its largest
size. Seconds are CPU seconds of ``decompile_code``, the least of several runs. ``ratio`` is the cost of an instruction
as a multiple of what it costs in straight-line code of 1,000 instructions, measured in the same run. Exit status 1 when
a ratio is above ``--most``.
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
import time
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from shape_sources import SHAPES, Shape

from depyf.decompiler import decompile_code
from depyf.result import DecompilationError
from depyf.source.deep_stack import _in_deep_thread, with_deep_stack
from depyf.sweep.targets import size

SIZES = "1000,4000,16000"
REFERENCE = 1_000
MOST = 1.5
SHORT = 0.2
"""Seconds. What takes less is measured several times."""


@dataclass(frozen=True)
class Row:
    """One measurement."""

    shape: str
    copies: int
    instructions: int
    seconds: float
    ratio: float
    verdict: str

    def __str__(self) -> str:
        return (
            f"{self.shape:<38}{self.copies:>8,}{self.instructions:>9,}{self.seconds:>10.3f}{self.ratio:>8.2f}"
            f"  {self.verdict}"
        )


def code_of(shape: Shape, copies: int) -> types.CodeType:
    """The function of a shape, or its module."""
    source = shape.source(copies)
    module = with_deep_stack(lambda: compile(source, "<shape>", "exec", dont_inherit=True))
    if not shape.header:
        return module
    return next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))


def weight(shape: Shape, code: types.CodeType) -> int:
    """How many instructions ``code`` has; of a folded constant each element counts."""
    return size(code) + sum(map(elements, code.co_consts)) if shape.folded else size(code)


def elements(constant: object) -> int:
    """The constants in a constant."""
    return sum(1 + elements(each) for each in constant) if isinstance(constant, (tuple, frozenset)) else 0


def of_size(shape: Shape, instructions: int) -> Tuple[int, types.CodeType]:
    """The code of a shape that has about so many instructions, or as many as it can have."""
    few = min(60, max(1, shape.most // 2))
    less, more = weight(shape, code_of(shape, few)), weight(shape, code_of(shape, 2 * few))
    each = (more - less) / few
    copies = max(1, min(shape.most, round((instructions - less + each * few) / each)))
    return copies, code_of(shape, copies)


def sizes_of(shape: Shape, sizes: List[int]) -> Iterator[Tuple[int, types.CodeType]]:
    """The sizes of a shape; of one that can't be that large the largest it can have, and parts of that."""
    copies, largest = of_size(shape, sizes[-1])
    total = weight(shape, largest)
    for wanted in sizes[:-1]:
        yield of_size(shape, wanted if copies < shape.most else wanted * total // sizes[-1])
    yield copies, largest


class TimeLimit(BaseException):
    """No ``Exception``, so that no handler in the decompiler swallows it."""


def stop(_signal: int, _frame: object) -> None:
    raise TimeLimit


def cpu_seconds(code: types.CodeType, limit: float) -> Tuple[float, str]:
    """CPU seconds to decompile and verify, the least of up to seven runs, and the verdict."""
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


def reference() -> float:
    """CPU seconds an instruction costs in straight-line code."""
    _copies, code = of_size(SHAPES[0], REFERENCE)
    return cpu_seconds(code, 60)[0] / size(code)


def rows_of(shape: Shape, sizes: List[int], limit: float) -> Iterator[Row]:
    """The rows of a shape. The machine may be slower now than it was before: the reference is measured again."""
    unit = reference()
    for copies, code in sizes_of(shape, sizes):
        count = weight(shape, code)
        seconds, verdict = cpu_seconds(code, limit)
        yield Row(shape.name, copies, count, seconds, seconds / count / unit, verdict)


def table(shapes: List[Shape], sizes: List[int], most: float, limit: float) -> int:
    """Print the table; return 1 when a ratio is above ``most``."""
    unit = reference()
    print(f"CPython {platform.python_version()}: {1e6 * unit:.1f} microseconds an instruction of straight-line code")
    print(f"{'shape':<38}{'copies':>8}{'instr.':>9}{'CPU s':>10}{'ratio':>8}  verdict", flush=True)
    above = []
    for shape in shapes:
        for row in rows_of(shape, sizes, limit):
            print(row, flush=True)
            if row.ratio > most:
                above.append(row)
    print(f"{len(above)} above {most}")
    return int(bool(above))


def profile(shapes: List[Shape], sizes: List[int]) -> None:
    """Prints where the time of the largest size goes."""
    for shape in shapes:
        copies, code = of_size(shape, sizes[-1])
        print(f"{shape.name}, {copies} copies")
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
    options = parser.parse_args()
    if options.python:
        rest = ["--shapes", options.shapes, "--sizes", options.sizes, "--most", str(options.most)]
        rest += ["--limit", str(options.limit)]
        rest += ["--profile"] * options.profile
        return max(subprocess.call([python, __file__, *rest]) for python in options.python)
    shapes = [shape for shape in SHAPES if re.search(options.shapes, shape.name)]
    sizes = [int(each) for each in options.sizes.split(",")]
    if options.profile:
        profile(shapes, sizes)
        return 0
    signal.signal(signal.SIGPROF, stop)
    return table(shapes, sizes, options.most, options.limit)


if __name__ == "__main__":
    sys.exit(main())
