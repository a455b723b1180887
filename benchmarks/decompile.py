"""Measure decompiling and verifying: by instruction as functions grow, and compared with the parser and printer.

    python benchmarks/decompile.py [--repeats N] [--modules argparse,textwrap,...]

Two tables. The first: microseconds an instruction for generated functions of 100 to 50,000 instructions, straight-line
and branchy, and the ratio to the function of 1,000. The second: the same work on standard library modules, as a
multiple of ``ast.unparse(ast.parse(source))`` of their source, which is the cheapest way from text to tree to text. All
CPU times are the best of several, in one process.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
import time
import types
from pathlib import Path
from typing import Callable, Iterator, List

from depyf.decompiler import decompile_code, instruction_count

SIZES = (100, 1_000, 10_000, 50_000)
MODULES = "textwrap,heapq,shlex,json.decoder,string,fractions,calendar,argparse,csv,configparser,dataclasses,inspect"
REFERENCE = 1_000

STRAIGHT = """\
    a = b + c * {n}
    b = f(a, c, key={n})
    c.attribute_{m} = a[{n}]
    d['k{m}'] = [a, b, (c, 'text {n}')]
"""

BRANCHY = """\
    if a < {n} and b:
        a = f(a, {n})
    elif c is None or a == b:
        b = c or {n}
    else:
        for x in range({n}):
            if x == a:
                break
            d[x] = a if b else c
        else:
            a = -{n}
    while a > {n}:
        a -= 1
        if f(a):
            continue
        b += a
    try:
        c = f(b)
    except ValueError as error:
        c = error
"""


def function_of(instructions: int, pattern: str) -> types.CodeType:
    """Return a function of about ``instructions`` instructions that repeats ``pattern``."""

    def made(copies: int) -> types.CodeType:
        body = "".join(pattern.format(n=1000 + copy, m=copy % 50) for copy in range(copies))
        module = compile(f"def f(a, b, c, d, f):\n{body}    return a, b, c, d\n", "<benchmark>", "exec")
        return next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))

    ten, twenty = instruction_count(made(10)), instruction_count(made(20))
    return made(max(1, round((instructions - (2 * ten - twenty)) / ((twenty - ten) / 10))))


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Return the CPU seconds of the fastest of ``repeats`` runs."""
    times: List[float] = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def growth(repeats: int) -> Iterator[str]:
    """Yield the lines of the first table."""
    yield f"{'shape':<14}{'instructions':>14}{'seconds':>10}{'us each':>10}{'ratio':>8}  verdict"
    for shape, pattern in (("straight-line", STRAIGHT), ("branchy", BRANCHY)):
        rows = []
        for instructions in SIZES:
            code = function_of(instructions, pattern)
            answer = decompile_code(code)
            # A single run of a small function is too short to measure.
            runs = repeats if instructions >= 10_000 else repeats * 10
            seconds = best_of(runs, lambda code=code: decompile_code(code))  # type: ignore[misc]
            rows.append((instructions, instruction_count(code), seconds, answer.verdict.value))
        reference = next(seconds / count for wanted, count, seconds, _verdict in rows if wanted == REFERENCE)
        for _wanted, count, seconds, verdict in rows:
            ratio = seconds / count / reference
            yield f"{shape:<14}{count:>14,}{seconds:>10.3f}{1e6 * seconds / count:>10.1f}{ratio:>8.2f}  {verdict}"


def against_the_parser(modules: List[str], repeats: int) -> Iterator[str]:
    """Yield the lines of the second table."""
    yield f"{'module':<14}{'instructions':>14}{'decompile, verify':>20}{'parse, unparse':>17}{'ratio':>8}  verdict"
    totals = [0.0, 0.0]
    for name in modules:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise SystemExit(f"{name}: no such module")
        source = Path(spec.origin).read_text()
        code = compile(source, spec.origin, "exec", dont_inherit=True)
        verdict = decompile_code(code).verdict.value
        ours = best_of(repeats, lambda code=code: decompile_code(code))  # type: ignore[misc]
        theirs = best_of(repeats, lambda source=source: ast.unparse(ast.parse(source)))  # type: ignore[misc]
        totals[0] += ours
        totals[1] += theirs
        instructions = instruction_count(code)
        yield f"{name:<14}{instructions:>14,}{ours:>18.3f} s{theirs:>15.3f} s{ours / theirs:>8.1f}  {verdict}"
    yield f"{'all':<14}{'':>14}{totals[0]:>18.3f} s{totals[1]:>15.3f} s{totals[0] / totals[1]:>8.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--modules", default=MODULES)
    options = parser.parse_args()
    for line in growth(options.repeats):
        print(line, flush=True)
    print()
    for line in against_the_parser(options.modules.split(","), options.repeats):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
