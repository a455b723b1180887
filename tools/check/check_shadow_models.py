"""Run healthy models and training loops under ``depyf.shadow``: how many calls it checks, and whether it is quiet.

    python tools/check/check_shadow_models.py [--backend BACKEND] [--small] [--verbose] [NAME ...]

The programs are those of tests/programs/healthy_models.py, or with ``--small`` those of breaking.py and
breaking_frames.py there: small functions with graph breaks, called without and twice with gradients. Each runs twice,
with the same seed: without and with ``depyf.shadow(every=1)``. A line says how many calls of compiled functions there
were, how many of these ran no compiled code yet (they compile it, so there is nothing to check), how many of the others
were checked, whether all results are bitwise the same, what was found (each finding is a false alarm), and why calls
were not checked. The exit status is 1 where there is a finding, or where results differ.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "programs")]

import torch  # noqa: E402
from breaking import PROGRAMS as BREAKING  # noqa: E402
from breaking_case import Maker  # noqa: E402
from breaking_frames import PROGRAMS as FRAMES  # noqa: E402
from case import run as run_case  # noqa: E402
from healthy_models import PROGRAMS, Program  # noqa: E402

import depyf  # noqa: E402

COMPILES = "no compiled code fits"
KINDS = (("breaking", BREAKING), ("frames", FRAMES))


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested lists and tuples."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)


def of_case(make: Maker) -> Program:
    """Return a program that makes the calls of a small function."""

    def program(compile_it: Callable[[Any], Any]) -> Any:
        case = make()
        compiled = compile_it(case.function)
        return [repr(run_case(case, compiled, training)) for training in (False, True, True)]

    return program


def run(program: Program, backend: str) -> List[Any]:
    """Return what a program computes, and the random numbers that would come next."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    found = program(lambda function: torch.compile(function, backend=backend))
    texts = [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    return [*texts, *(each.detach().clone() for each in tensors_in(found)), torch.get_rng_state()]


def same(one: List[Any], other: List[Any]) -> bool:
    """Return whether two runs gave the same bits, or texts."""

    def bits(value: torch.Tensor) -> bytes:
        return bytes(value.contiguous().flatten().view(torch.uint8).numpy()) if value.numel() else b""

    def equal(ours: Any, theirs: Any) -> bool:
        if isinstance(ours, str) or isinstance(theirs, str):
            return bool(ours == theirs)
        return bool(ours.dtype == theirs.dtype and bits(ours) == bits(theirs))

    return len(one) == len(other) and all(equal(*pair) for pair in zip(one, other))


def checked(
    name: str, program: Program, backend: str, totals: Dict[str, int], reasons: Counter[str], *, verbose: bool
) -> bool:
    """Run one program both ways, and print a line; return whether it is quiet and the same."""
    start = time.perf_counter()
    try:
        plain = run(program, backend)
    except Exception as error:
        print(f"{name:34} does not run without shadow: {type(error).__name__}: {str(error)[:120]}", flush=True)
        totals["broken"] += 1
        return True
    stream = io.StringIO()
    with depyf.shadow(every=1, stream=stream) as seen:
        ours = run(program, backend)
    counts = seen.counts
    compiling = sum(count for reason, count in seen.not_checked.items() if reason.startswith(COMPILES))
    others = {reason: count for reason, count in seen.not_checked.items() if not reason.startswith(COMPILES)}
    reasons.update(others)
    is_same = same(plain, ours)
    again = is_same or same(plain, run(program, backend))
    words = "same" if is_same else "DIFFERS" if again else "differs without shadow, too"
    for key, number in (
        ("programs", 1),
        ("calls", counts.calls),
        ("compiling", compiling),
        ("checked", counts.checked),
        ("findings", len(seen.findings)),
        ("same", is_same),
        ("never checked", not counts.checked),
        ("wholly checked", not others),
    ):
        totals[key] += int(number)
    print(
        f"{name:34} {counts.calls:5} {compiling:9} {counts.checked:7} {len(seen.findings):8}  {words:8}"
        f" {time.perf_counter() - start:5.1f} s",
        flush=True,
    )
    for reason, count in others.items():
        print(f"    {count} not checked: {reason}", flush=True)
    for found in seen.findings:
        print(f"    FALSE ALARM? {found}", flush=True)
    if verbose:
        print(stream.getvalue(), flush=True)
    return (is_same or not again) and not seen.findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of some")
    parser.add_argument("--backend", default="aot_eager")
    parser.add_argument("--small", action="store_true", help="small functions with graph breaks instead of models")
    parser.add_argument("--verbose", action="store_true", help="print what shadow printed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    small = {f"{kind} {name}": of_case(make) for kind, makes in KINDS for name, make in makes.items()}
    programs = small if options.small else PROGRAMS
    names = [name for name in programs if not options.names or any(part in name for part in options.names)]
    totals: Dict[str, int] = Counter()
    reasons: Counter[str] = Counter()
    print(f"{'program':34} calls compiling checked findings  results")
    quiet = [checked(name, programs[name], options.backend, totals, reasons, verbose=options.verbose) for name in names]
    able = totals["calls"] - totals["compiling"]
    print(
        f"{totals['programs']} programs, {options.backend}: {totals['checked']} of {able} calls that run compiled code"
        f" checked, {totals['findings']} findings, {totals['same']} programs with the same bits;"
        f" {totals['wholly checked']} programs checked in each such call, {totals['never checked']} in none"
    )
    for reason, count in reasons.most_common():
        print(f"  {count} not checked: {reason}")
    return 0 if all(quiet) else 1


if __name__ == "__main__":
    sys.exit(main())
