"""Compare what ``depyf.profile`` finds with the sums of ``torch.profiler``: five programs, Inductor, on the CPU.

    python benchmarks/profiled.py [--programs 'bert|breaks'] [--steps 9] [--sentences]

Each program runs in a fresh process, with one thread. ``depyf.profile`` says which share of the time is on known lines,
and how long kernels and operations of a call take. Beside that stands the sum of the profiler's own times of the same
calls (``self_cpu_time_total``): all operations, and the marks around kernels of C++, which the profiler does not see.
Both count the faster half of the calls. ``--sentences`` prints whether compiling pays. The exit status is 1 if a share
is below 95 %.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

HERE = Path(__file__).resolve().parent
SHARE = 0.95


def bert() -> Callable[[], Any]:
    """Train an encoder of six layers: a step with its backward."""
    import torch
    from cost_programs import bert_encoder

    tokens = torch.randint(0, 1000, (2, 32))
    encoder, loss_of = bert_encoder()

    def step() -> Any:
        loss = loss_of(encoder, tokens)
        loss.backward()
        return loss.detach()

    return step


def generate() -> Callable[[], Any]:
    """Generate a token with a decoder of GPT-2's shape, without gradients."""
    import torch
    from cost_programs import Decoder, gpt2, transformers

    tokens = torch.randint(1, 1000, (1, 12))
    if transformers is None:
        decoder: Any = Decoder().eval()

        def call() -> Any:
            return decoder(tokens, [])[0]
    else:
        model = gpt2()

        def call() -> Any:
            return model(input_ids=tokens, use_cache=True).logits

    def step() -> Any:
        with torch.no_grad():
            return call()[:, -1:].argmax(-1)

    return step


def unet() -> Callable[[], Any]:
    """Train a UNet of a diffusion model: a step with its backward."""
    import torch
    from cost_programs import UNet

    model = UNet()
    images, times = torch.randn(2, 3, 16, 16), torch.tensor([1.0, 7.0])

    def step() -> Any:
        loss = (model(images, times) - images).square().mean()
        loss.backward()
        return loss.detach()

    return step


def small_operations() -> Callable[[], Any]:
    """Run an MLP of forty small operations."""
    import torch

    layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(8))
    x = torch.randn(16, 32)

    def step() -> Any:
        y = x
        for layer in layers:
            y = layer(y)
            y = y * torch.sigmoid(y) + torch.tanh(y)
            y = y - y.mean(-1, keepdim=True)
        return y

    return step


def breaks() -> Callable[[], Any]:
    """Run a function with three graph breaks."""
    import torch

    first, second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)
    x = torch.randn(64, 64)

    def step() -> Any:
        y = first(x).relu()
        torch._dynamo.graph_break()
        y = second(y).softmax(-1)
        if y.sum() > 0:
            y = y * 2
        torch._dynamo.graph_break()
        return y.cumsum(0).sin()

    return step


PROGRAMS = {each.__name__: each for each in (bert, generate, unet, small_operations, breaks)}


def measured(name: str, steps: int) -> Dict[str, Any]:
    """Return what ``depyf.profile`` measures of a program, and the sum of the profiler's own times."""
    import depyf
    from depyf.dynamo.questions.profile import measuring

    kept: List[List[Any]] = []
    original = measuring.spans_of

    def spans_of(events: Any) -> Any:
        kept.append(list(events))
        return original(events)

    measuring.spans_of = spans_of
    found = depyf.profile(PROGRAMS[name](), backend="inductor", steps=steps, pairs=15)
    return {
        "attributed": found.attributed,
        "seconds": found.seconds,
        "torch": own_sum(kept[0], measuring.STEP),  # the compiled calls come first
        "sentences": found.sentences(),
        "gaps": sum(each.seconds for each in found.gaps) / found.parts.seconds,
    }


def own_sum(events: List[Any], step: str) -> float:
    """Return the seconds of a call: the mean over the faster half of the calls, which marks called ``step`` divide."""
    bounds = sorted(each.time_range.start for each in events if each.name.startswith(step))
    calls = sorted(zip(bounds, bounds[1:]), key=lambda call: call[1] - call[0])[: len(bounds) // 2]
    work = [each for each in events if is_work(each.name)]
    sums = [
        sum(each.self_cpu_time_total for each in work if begin <= each.time_range.start < end) for begin, end in calls
    ]
    return 1e-6 * sum(sums) / len(sums)


def is_work(name: str) -> bool:
    """Return whether an event is an operation, or the mark of a kernel, and not what surrounds them."""
    return name.startswith("depyf kernel") or ("::" in name and not name.startswith(("autograd::", "torch::autograd")))


def run(name: str, steps: int) -> Dict[str, Any]:
    """Measure a program in a process of its own."""
    command = [sys.executable, __file__, "--one", name, "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    found: Dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="")
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--sentences", action="store_true")
    parser.add_argument("--one", choices=PROGRAMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        sys.path.insert(0, str(HERE))
        __import__("torch").set_num_threads(1)
        print(json.dumps(measured(options.one, options.steps)))
        return 0
    print("| program | on known lines | kernels and operations, depyf | torch.profiler | ratio | gaps |")
    print("|---|---|---|---|---|---|")
    bad = False
    sentences = []
    for name in [name for name in PROGRAMS if re.match(options.programs, name)]:
        found = run(name, options.steps)
        bad = bad or found["attributed"] < SHARE
        one, other = found["seconds"] * 1e3, found["torch"] * 1e3
        share = f"{100 * found['attributed']:.1f} % | {one:.3f} ms | {other:.3f} ms | {one / other:.3f}"
        print(f"| {name} | {share} | {100 * found['gaps']:.0f} % of a call |", flush=True)
        sentences += [f"{name}: {' '.join(found['sentences'])}"]
    if options.sentences:
        print("", *sentences, sep="\n")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
