"""Measure what ``depyf.shadow`` costs a program: CPU seconds of its calls, alternating with the same calls without it.

    python benchmarks/shadow_cost.py                                # BERT and GPT-2, Inductor, every = 1 to 1000
    python benchmarks/shadow_cost.py gpt2 --every 1,1000 --calls 5000 --repeats 7

``bert`` is called with 4 sequences of 64 tokens, ``gpt2`` generates: a prompt of 8 tokens, then 24 tokens, one a call,
with its cache. One process, one thread. Blocks of calls without and with ``shadow`` alternate, and of each pair the
ratio is taken; what is printed is the median, with the lowest and the highest. At 1,000 a check is rare, and its cost
is less than the noise of the machine: so there is also what follows from the cost of a check, which is measured at the
first ``every``.
"""

from __future__ import annotations

import argparse
import io
import resource
import statistics
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import torch
import transformers

import depyf

Call = Callable[[], object]


def bert(backend: str, width: int, layers: int) -> Call:
    """Return what makes one call of an encoder."""
    config = transformers.BertConfig(
        vocab_size=1000,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
    )
    model: Any = torch.compile(transformers.BertModel(config).eval(), backend=backend)
    tokens = torch.randint(0, 1000, (4, 64))
    mask = torch.ones_like(tokens)
    return lambda: model(input_ids=tokens, attention_mask=mask)


def gpt2(backend: str, width: int, layers: int) -> Call:
    """Return what generates the next token, or begins a new text."""
    config = transformers.GPT2Config(
        vocab_size=1000,
        n_embd=width,
        n_layer=layers,
        n_head=width // 64,
        n_positions=64,
        bos_token_id=0,
        eos_token_id=0,
    )
    model: Any = torch.compile(transformers.GPT2LMHeadModel(config).eval(), backend=backend)
    prompt = torch.randint(0, 1000, (4, 8))
    now: Dict[str, Any] = {"tokens": prompt, "past": None, "count": 0}

    def call() -> None:
        found = model(input_ids=now["tokens"], past_key_values=now["past"], use_cache=True)
        now.update(tokens=found.logits[:, -1:].argmax(-1), past=found.past_key_values, count=now["count"] + 1)
        if now["count"] == 25:
            now.update(tokens=prompt, past=None, count=0)

    return call


MODELS: Dict[str, Callable[[str, int, int], Call]] = {"bert": bert, "gpt2": gpt2}


def cpu_of(call: Call, count: int) -> float:
    """Return the CPU seconds of one of ``count`` calls."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(count):
        call()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count


def measure(call: Call, every: int, calls: int, repeats: int) -> List[float]:
    """Print the ratios of blocks with ``shadow`` to blocks without; return the seconds of calls without and with."""
    ratios, plain, shadowed, samples = [], [], [], 0
    count = max(25, calls * every // 1000)
    for _ in range(repeats):
        plain.append(cpu_of(call, count))
        with depyf.shadow(every, stream=io.StringIO()) as seen:
            shadowed.append(cpu_of(call, count))
        ratios.append(shadowed[-1] / plain[-1])
        samples += seen.counts.checked
        if seen.findings or seen.counts.checked != seen.counts.sampled:
            print(f"  {seen}")
    print(
        f"  every={every}: {statistics.median(ratios):.3f} times ({min(ratios):.3f} to {max(ratios):.3f}),"
        f" {samples} checks in {repeats} x {count} calls",
        flush=True,
    )
    return [statistics.median(plain), statistics.median(shadowed)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"some of: {', '.join(MODELS)}")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--every", default="1,10,100,1000")
    parser.add_argument("--calls", type=int, default=3000, help="the calls of a block at every=1000")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.models or MODELS:
        torch.manual_seed(0)
        torch._dynamo.reset()
        with torch.no_grad():
            call = MODELS[name](options.backend, options.width, options.layers)
            # What an entry was compiled with is known from the start, as in a program under shadow.
            with depyf.shadow(1, stream=io.StringIO()):
                for _ in range(60):
                    call()
            print(f"{name}, {options.layers} layers of {options.width}, {options.backend}", flush=True)
            first, *others = [int(each) for each in options.every.split(",")]
            plain, with_check = measure(call, first, options.calls, options.repeats)
            check = (with_check - plain) * first
            print(f"  a call takes {plain * 1e3:.2f} ms, a check {check * 1e3:.1f} ms")
            for every in others:
                measure(call, every, options.calls, options.repeats)
                print(f"    by the cost of a check: {1 + check / every / plain:.4f} times", flush=True)


if __name__ == "__main__":
    main()
