"""Show what a forked child of a program that uses PyTorch can run: the reason ``compare`` does not fork.

    python tools/measure/measure_forked_calls.py               # one case a line: its result, or that it hangs
    python tools/measure/measure_forked_calls.py --limit 30    # seconds after which a child is stopped

Each case runs in a child of this process, after typical work of a user's program. Nothing is written, except by torch's
own caches. Linux only; docs/compare.md has the results.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from typing import Callable

import torch
import torch._dynamo
import torch._inductor.config as inductor_config
from torch._inductor.utils import fresh_cache, run_and_get_code

LARGE = torch.randn(2000, 2000)
"""Large enough for several threads."""


def report_child(name: str, function: Callable[[], object], limit: float) -> None:
    """Print what ``function`` does in a forked child: its result, its exception, or that it did not end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = str(function())
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        os.write(write, result.encode()[:1000])
        os._exit(0)
    os.close(write)
    end = time.monotonic() + limit
    while time.monotonic() < end and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.1)
    if time.monotonic() < end:
        print(f"{name}: {os.read(read, 1000).decode()}", flush=True)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(f"{name}: hangs ({limit:.0f} s)", flush=True)
    os.close(read)


def operation() -> str:
    (LARGE.sin() + 1).sum()
    return "runs"


def backward() -> str:
    leaf = torch.randn(100, requires_grad=True)
    (leaf * leaf).sum().backward()
    return "runs"


def compiled(number: float) -> Callable[[torch.Tensor], torch.Tensor]:
    torch._dynamo.reset()
    result: Callable[[torch.Tensor], torch.Tensor] = torch.compile(lambda x: (x.cos() + number).sum())
    return result


def compile_anew(compile_threads: int) -> str:
    with inductor_config.patch(compile_threads=compile_threads):
        compiled(time.time())(LARGE)
    return "runs"


def with_one_thread(function: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        torch.set_num_threads(1)
        return function()

    return run


def parallel_loops(threads: int) -> int:
    """Return how many parallel loops Inductor writes for a sum."""
    torch.set_num_threads(threads)
    with fresh_cache():
        return str(run_and_get_code(compiled(2.0), LARGE)[1]).count("omp parallel")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=20, help="seconds (default: 20)")
    limit = parser.parse_args().limit
    torch.set_num_threads(2)
    operation()
    report_child("an operation, after one in the parent", operation, limit)
    report_child("the same with one thread", with_one_thread(operation), limit)
    backward()
    report_child("a backward with one thread, after one in the parent", with_one_thread(backward), limit)
    kernel = compiled(1.0)
    kernel(LARGE)
    print(f"threads of this process once Inductor has compiled: {len(os.listdir('/proc/self/task'))}")
    report_child("a kernel of the parent, with one thread", with_one_thread(lambda: kernel(LARGE)), limit)
    report_child("Inductor with one thread", with_one_thread(lambda: compile_anew(2)), limit)
    report_child("Inductor with one thread that compiles in process", with_one_thread(lambda: compile_anew(1)), limit)
    print(f"parallel loops that Inductor writes for 2 threads: {parallel_loops(2)}; for one: {parallel_loops(1)}")


if __name__ == "__main__":
    main()
