"""Measure what ``prepare_debug`` adds to the compile time of real models with Inductor, and to later calls.

    python benchmarks/compile_overhead.py [--repeats N] [--models bert,gpt2] [--modes inference,training]

Each repeat compiles the model twice in one process, with and without ``prepare_debug``, in alternating order, each time
without caches: Dynamo is reset and Inductor's caches are empty. The ratio is that of the medians; the spread is that of
the ratios of the pairs; ``own CPU`` excludes the C++ compiler and other work of the machine. Later calls are timed
after ``prepare_debug`` has ended. Models are small, and made from their configurations: nothing is downloaded.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Tuple

import torch
import torch._inductor.utils as inductor
import transformers

import depyf

LAYERS = 2


def bert() -> Tuple[torch.nn.Module, Dict[str, torch.Tensor]]:
    config = transformers.BertConfig(
        vocab_size=1000, hidden_size=64, num_hidden_layers=LAYERS, num_attention_heads=4, intermediate_size=128
    )
    tokens = torch.randint(0, 1000, (2, 32))
    return transformers.BertForMaskedLM(config), {"input_ids": tokens, "labels": tokens}


def gpt2() -> Tuple[torch.nn.Module, Dict[str, torch.Tensor]]:
    config = transformers.GPT2Config(
        vocab_size=1000, n_embd=64, n_layer=LAYERS, n_head=4, n_positions=64, use_cache=False,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    tokens = torch.randint(0, 1000, (2, 32))
    return transformers.GPT2LMHeadModel(config), {"input_ids": tokens, "labels": tokens}


MODELS: Dict[str, Callable[[], Tuple[torch.nn.Module, Dict[str, torch.Tensor]]]] = {"bert": bert, "gpt2": gpt2}


@contextlib.contextmanager
def fresh_caches() -> Iterator[None]:
    """Use empty caches inside of the context."""
    torch._dynamo.reset()
    with inductor.fresh_cache():
        yield


def step(model: Any, inputs: Dict[str, torch.Tensor], training: bool) -> None:
    """Make one call, with the backward pass when ``training``."""
    with contextlib.nullcontext() if training else torch.no_grad():
        loss = model(**inputs).loss
    if training:
        loss.backward()


@dataclass(frozen=True)
class Times:
    """Seconds: of the first call, which compiles, on the clock and of this process's CPU; of a later call (best)."""

    wall: float
    cpu: float
    later: float


def measure(name: str, training: bool, debug: bool) -> Times:
    """Compile and run the model once without caches."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model.train(training)
    with fresh_caches(), tempfile.TemporaryDirectory() as dump:
        compiled = torch.compile(model)
        attached: ContextManager[Any] = depyf.prepare_debug(dump) if debug else contextlib.nullcontext()
        start, start_cpu = time.perf_counter(), time.process_time()
        with attached:
            step(compiled, inputs, training)
        wall, cpu = time.perf_counter() - start, time.process_time() - start_cpu
        later: List[float] = []
        for _ in range(30):
            start = time.perf_counter()
            step(compiled, inputs, training)
            later.append(time.perf_counter() - start)
    return Times(wall, cpu, min(later))


def compare(name: str, training: bool, repeats: int) -> str:
    """Return one row: medians with and without, and their ratio."""
    measure(name, training, False)  # imports and C++ toolchain checks happen in the first run
    plain: List[Times] = []
    debug: List[Times] = []
    for repeat in range(repeats):
        for attached in (False, True) if repeat % 2 == 0 else (True, False):
            (debug if attached else plain).append(measure(name, training, attached))
    without, with_it = (statistics.median(times.wall for times in runs) for runs in (plain, debug))
    pairs = sorted(100 * (d.wall / p.wall - 1) for p, d in zip(plain, debug))
    cpu = statistics.median(t.cpu for t in debug) / statistics.median(t.cpu for t in plain)
    later = min(t.later for t in debug) / min(t.later for t in plain)
    cells = [
        f"{without:.2f} s",
        f"{with_it:.2f} s",
        f"{100 * (with_it / without - 1):+.1f} %",
        f"{pairs[0]:+.1f} .. {pairs[-1]:+.1f} %",
        f"{100 * (cpu - 1):+.1f} %",
        f"{100 * (later - 1):+.1f} %",
    ]
    return row(name, "training" if training else "inference", *cells)


def row(*cells: str) -> str:
    widths = (7, 10, 10, 10, 10, 20, 10, 12)
    return "".join(
        cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths))
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--models", default="bert,gpt2")
    parser.add_argument("--modes", default="inference,training")
    options = parser.parse_args()
    print(row("model", "mode", "plain", "attached", "overhead", "of single pairs", "own CPU", "later calls"))
    for name in options.models.split(","):
        for mode in options.modes.split(","):
            print(compare(name, mode == "training", options.repeats), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
