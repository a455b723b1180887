"""Count the kernels with a line of the user, and compare with the lines that PyTorch attributes them to.

    python tools/measure/measure_kernel_lines.py [MODEL ...] [--level 1]

For ten small models (tests/programs/kernel_models.py), forward and backward. PyTorch's attribution is
``PyCodeCache.stack_frames_for_code`` for every line that launches a kernel; with ``--level 1`` its provenance tracking
is enabled and its attributions are included.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "programs")]

import torch  # noqa: E402
from kernel_models import MODELS  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.dump.manifest import run_of  # noqa: E402
from depyf.report.model.run import ModuleKernel, Run  # noqa: E402
from depyf.torch_trace.breaks import frames_of  # noqa: E402
from depyf.torch_trace.events import Event  # noqa: E402

Lines = Set[Tuple[str, int]]


@dataclass
class Measured:
    """Counts for one model; ``missed``: the lines of PyTorch from which a kernel is not reached."""

    kernels: int
    backward: int
    with_lines: int
    attributed: int
    missed: List[str]


def measure(name: str, directory: Path) -> Measured:
    """Run one of the models under ``prepare_debug`` and compare with PyTorch."""
    torch._dynamo.reset()
    with depyf.prepare_debug(directory) as prepared:
        MODELS[name]()()
        assert prepared.session is not None
        run = run_of(prepared.session)
        reported = reported_by_level_1(prepared.session.records(Event))
    attributed, missed = 0, []
    for kernel in run.kernels:
        ours = lines_of(run, kernel)
        theirs = set().union(
            *attributions(directory, kernel), reported.get(kernel.name, set()) if not kernel.extern else ()
        )
        attributed += bool(theirs)
        missed += [f"{kernel.artifact}: {kernel.name}: {path}:{line}" for path, line in sorted(theirs - ours)]
        linked = {line for link in run_links(run, kernel) for line in range(link[0], link[1] + 1)}
        missed += [
            f"{kernel.artifact}: line {line} has no link" for line in kernel.calls if line not in linked and ours
        ]
    backward = sum(kernel.backward is True for kernel in run.kernels)
    return Measured(len(run.kernels), backward, sum(bool(k.places) for k in run.kernels), attributed, missed)


def lines_of(run: Run, kernel: ModuleKernel) -> Lines:
    """Return the lines from which the page links to the kernel."""
    return {(run.sources[source].path, line) for source, line in kernel.places}


def run_links(run: Run, kernel: ModuleKernel) -> Iterator[Tuple[int, int]]:
    """Yield the line ranges of the kernel's module that are linked to lines of the user."""
    for artifact in run.artifacts:
        if artifact.id == kernel.artifact:
            yield from ((link.first, link.last) for link in artifact.links if link.places)


def attributions(directory: Path, kernel: ModuleKernel) -> Iterator[Lines]:
    """Yield PyTorch's attribution of each line that launches the kernel."""
    from torch._inductor.codecache import PyCodeCache

    for line in kernel.calls:
        frames = PyCodeCache.stack_frames_for_code(str(directory / kernel.artifact), line)
        yield {(frame["filename"], frame["line"]) for frame in frames or ()}


def reported_by_level_1(events: List[Event]) -> Dict[str, Lines]:
    """Return the same from provenance tracking, by the name of the kernel; empty if it is disabled."""
    found: Dict[str, Lines] = {}
    for event in events:
        if event.name == "inductor_provenance_tracking_kernel_stack_traces" and isinstance(event.meta, dict):
            import json

            for name, stacks in json.loads(event.payload or "{}").items():
                into = found.setdefault(name.partition(":")[0], set())
                into.update((path, line) for stack in stacks for path, line, _ in frames_of(stack))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"some of: {', '.join(MODELS)}")
    parser.add_argument("--level", type=int, default=0, help="PyTorch's provenance_tracking_level")
    arguments = parser.parse_args()
    torch._inductor.config.trace.provenance_tracking_level = arguments.level
    total = [0, 0, 0, 0, 0]
    print(f"{'model':26} {'kernels':>8} {'backward':>9} {'with a line':>12} {'by PyTorch':>11} {'missed':>7}")
    for name in arguments.models or list(MODELS):
        with tempfile.TemporaryDirectory() as folder:
            found = measure(name, Path(folder))
        row = [found.kernels, found.backward, found.with_lines, found.attributed, len(found.missed)]
        total = [before + now for before, now in zip(total, row)]
        print(f"{name:26} {row[0]:8} {row[1]:9} {row[2]:12} {row[3]:11} {row[4]:7}", flush=True)
        for each in found.missed:
            print("   not reached:", each)
    share = 100 * total[2] / max(1, total[0])
    print(f"{'all':26} {total[0]:8} {total[1]:9} {total[2]:12} {total[3]:11} {total[4]:7}")
    print(f"{share:.1f} % of the kernels have a line; {total[4]} attributions of PyTorch's are not reached")
    return 1 if total[4] else 0


if __name__ == "__main__":
    sys.exit(main())
