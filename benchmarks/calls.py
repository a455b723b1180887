"""What a call of a tiny compiled function costs: without depyf, in a session, after one, and under ``watch``.

    python benchmarks/calls.py                     # 10 million calls each, 500,000 at a time, by turns
    python benchmarks/calls.py --chunks 4 --backend aot_eager --ways plain,after,watch

Processes: ``plain`` has never imported depyf, ``during`` is inside of ``prepare_debug``, ``after`` has left it,
``watch`` is inside of ``depyf.watch``. They take turns, one chunk of calls each, so that what else the machine does
meets all of them. CPU nanoseconds a call.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, ContextManager, Dict, List

WAYS = ("plain", "during", "after", "watch")


def child(way: str, backend: str, calls: int) -> None:
    """Compile the function, then measure a chunk of calls for each line that is read."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        attached: ContextManager[Any] = contextlib.nullcontext()
        if way != "plain":
            import depyf

            attached = depyf.watch() if way == "watch" else depyf.prepare_debug(os.path.join(root, "dump"))

        @torch.compile(backend=backend)
        def tiny(x: torch.Tensor) -> torch.Tensor:
            return x + 1

        x = torch.ones(2)
        with contextlib.ExitStack() as stack:
            stack.enter_context(attached)
            tiny(x)
            if way == "after":
                stack.close()
            for _ in sys.stdin:
                start = time.process_time()
                for _ in range(calls):
                    tiny(x)
                print((time.process_time() - start) / calls * 1e9, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--calls", type=int, default=500_000, help="calls of a chunk")
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--ways", default=",".join(WAYS), help="plain is always there")
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.backend, options.calls)
        return 0
    common = [sys.executable, os.path.abspath(__file__), "--backend", options.backend, "--calls", str(options.calls)]
    children: Dict[str, Any] = {}
    ways = [way for way in WAYS if way == "plain" or way in options.ways.split(",")]
    for way in ways:
        children[way] = subprocess.Popen(
            [*common, "--child", way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    found: Dict[str, List[float]] = {way: [] for way in ways}
    for number in range(options.chunks):
        for way in ways if number % 2 == 0 else ways[::-1]:
            print(file=children[way].stdin, flush=True)
            found[way].append(float(children[way].stdout.readline()))
    for way in ways:
        children[way].stdin.close()
        children[way].wait()
    print("| | ns a call, median | lowest | highest | beside plain, median of the pairs |")
    print("|---|---|---|---|---|")
    for way, times in found.items():
        beside = statistics.median(one / other for one, other in zip(times, found["plain"]))
        cells = [statistics.median(times), min(times), max(times)]
        shown = " | ".join(f"{each:,.0f}" for each in cells)
        print(f"| {way} | {shown} | {100 * (beside - 1):+.1f} % |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
