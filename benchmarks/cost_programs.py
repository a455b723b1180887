"""The programs that ``cost.py`` measures: a function for each, which gets the backend and makes its calls.

Run as a script it is one run of one program, in this process. It prints the CPU seconds of its parts last.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from typing import Any, Callable, ContextManager, Dict, List, Tuple

import torch
import torch._dynamo

try:
    import transformers
except ImportError:
    transformers = None  # type: ignore[assignment,unused-ignore]


class Encoder(torch.nn.Module):
    """An encoder of BERT's shape, where transformers is missing."""

    def __init__(self, layers: int, vocabulary: int = 1000, width: int = 64) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(vocabulary, width)
        self.positions = torch.nn.Embedding(128, width)
        self.norm = torch.nn.LayerNorm(width)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True) for _ in range(layers)
        )
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.words(tokens) + self.positions(torch.arange(tokens.shape[1])))
        for layer in self.layers:
            x = layer(x)
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


def bert_encoder(layers: int = 6) -> Tuple[Any, Callable[[Any, torch.Tensor], Any]]:
    """Return an encoder, and a function that returns the loss of the encoder, compiled or not, for some tokens."""
    if transformers is None:
        return Encoder(layers), lambda encoder, tokens: encoder(tokens, tokens)
    config = transformers.BertConfig(
        vocab_size=1000, hidden_size=64, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=128
    )
    return transformers.BertForMaskedLM(config), lambda model, tokens: model(input_ids=tokens, labels=tokens).loss


def bert(backend: str, layers: int = 6) -> None:
    """Train an encoder for two steps."""
    tokens = torch.randint(0, 1000, (2, 32))
    encoder, loss = bert_encoder(layers)
    compiled = torch.compile(encoder, backend=backend)
    for _ in range(2):
        loss(compiled, tokens).backward()


def bert12(backend: str) -> None:
    """Train an encoder of 12 layers for two steps."""
    bert(backend, 12)


class Decoder(torch.nn.Module):
    """A decoder that keeps keys and values, of two layers, where transformers is missing."""

    def __init__(self, layers: int = 2, width: int = 64) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(1000, width)
        self.mixing = torch.nn.ModuleList(torch.nn.Linear(width, 3 * width) for _ in range(layers))
        self.head = torch.nn.Linear(width, 1000)

    def forward(self, token: torch.Tensor, cache: List[Any]) -> Any:
        x = self.words(token)
        kept = []
        for at, layer in enumerate(self.mixing):
            query, key, value = layer(x).chunk(3, -1)
            if cache:
                key, value = torch.cat([cache[at][0], key], 1), torch.cat([cache[at][1], value], 1)
            kept.append((key, value))
            x = x + torch.nn.functional.scaled_dot_product_attention(query, key, value)
        return self.head(x), kept


def gpt2() -> Any:
    """Return a GPT-2 of two layers, of transformers."""
    config = transformers.GPT2Config(
        vocab_size=1000, n_embd=64, n_layer=2, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config).eval()


def generate(backend: str) -> None:
    """Generate eight tokens: without a cache, with one, then with one of dynamic length."""
    with torch.no_grad():
        if transformers is None:
            decoder: Any = torch.compile(Decoder().eval(), backend=backend)
            token, kept = torch.randint(0, 1000, (1, 5)), []
            for _ in range(8):
                logits, kept = decoder(token, kept)
                token = logits[:, -1:].argmax(-1)
            return
        model: Any = torch.compile(gpt2(), backend=backend)
        tokens, past = torch.randint(1, 1000, (1, 5)), None
        for _ in range(8):
            found = model(input_ids=tokens, past_key_values=past, use_cache=True)
            past, tokens = found.past_key_values, found.logits[:, -1:].argmax(-1)


class Vision(torch.nn.Module):
    """A vision transformer: patches, a class token, four encoder layers, a head."""

    def __init__(self, width: int = 64, layers: int = 4) -> None:
        super().__init__()
        self.patches = torch.nn.Conv2d(3, width, 8, 8)
        self.first = torch.nn.Parameter(torch.zeros(1, 1, width))
        self.positions = torch.nn.Parameter(torch.zeros(1, 17, width))
        layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.layers(x)[:, 0])  # type: ignore[no-any-return]


def vit(backend: str) -> None:
    """Train a vision transformer for two steps, at two batch sizes."""
    if transformers is None:
        own: Any = torch.compile(Vision(), backend=backend)
        for images in (4, 6):
            own(torch.randn(images, 3, 32, 32)).square().mean().backward()
        return
    config = transformers.ViTConfig(
        hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128, image_size=32, patch_size=8
    )
    model: Any = torch.compile(transformers.ViTForImageClassification(config), backend=backend)
    for images in (4, 6):
        model(pixel_values=torch.randn(images, 3, 32, 32)).logits.square().mean().backward()


class Residual(torch.nn.Module):
    """Two convolutions with group norm, a projection of the time step, and what goes around them."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.GroupNorm(4, inside), torch.nn.GroupNorm(4, outside)])
        self.first = torch.nn.Conv2d(inside, outside, 3, padding=1)
        self.second = torch.nn.Conv2d(outside, outside, 3, padding=1)
        self.time = torch.nn.Linear(32, outside)
        self.around = torch.nn.Conv2d(inside, outside, 1) if inside != outside else torch.nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.first(torch.nn.functional.silu(self.norms[0](x))) + self.time(time)[:, :, None, None]
        return self.second(torch.nn.functional.silu(self.norms[1](y))) + self.around(x)  # type: ignore[no-any-return]


class UNet(torch.nn.Module):
    """A UNet of a diffusion model: three resolutions, two blocks at each, down and up, attention at the lowest."""

    def __init__(self, width: int = 16, factors: Tuple[int, ...] = (1, 2, 4)) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, width, 3, padding=1)
        self.down, self.up = torch.nn.ModuleList(), torch.nn.ModuleList()
        kept: List[int] = []
        now = width
        for factor in factors:
            inside, now = now, width * factor
            self.down.append(torch.nn.ModuleList([Residual(inside, now), Residual(now, now)]))
            kept += [now, now]
        self.attention = torch.nn.MultiheadAttention(now, 4, batch_first=True)
        for factor in reversed(factors):
            blocks = []
            for _ in range(2):
                blocks.append(Residual(now + kept.pop(), width * factor))
                now = width * factor
            self.up.append(torch.nn.ModuleList(blocks))
        self.last = torch.nn.Conv2d(now, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        angles = step[:, None] * torch.exp(-torch.arange(16) / 4)
        time = torch.cat([angles.sin(), angles.cos()], 1)
        x, kept = self.first(x), []
        for number, blocks in enumerate(self.down):
            for block in blocks:
                x = block(x, time)
                kept.append(x)
            if number < len(self.down) - 1:
                x = torch.nn.functional.avg_pool2d(x, 2)
        flat = x.flatten(2).transpose(1, 2)
        x = x + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(x.shape)
        for number, blocks in enumerate(self.up):
            for block in blocks:
                x = block(torch.cat([x, kept.pop()], 1), time)
            if number < len(self.up) - 1:
                x = torch.nn.functional.interpolate(x, scale_factor=2.0)
        return self.last(x)  # type: ignore[no-any-return]


def unet(backend: str) -> None:
    """Train a UNet for two steps."""
    model: Any = torch.compile(UNet(), backend=backend)
    for _ in range(2):
        model(torch.randn(2, 3, 16, 16), torch.tensor([3.0, 5.0])).square().mean().backward()


def functions(backend: str) -> None:
    """Compile 200 functions of one line, each with its own code."""
    x = torch.ones(4)
    for number in range(200):
        scope: Dict[str, Any] = {}
        exec(compile(f"def f{number}(x):\n    return x * 2 + {number}\n", f"<function {number}>", "exec"), scope)
        torch.compile(scope[f"f{number}"], backend=backend)(x)


def storm(backend: str) -> None:
    """Compile one function 60 times, for 60 values of an argument."""
    limit = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"

    def scaled(x: torch.Tensor, factor: str, options: Dict[str, int]) -> torch.Tensor:
        if options["shift"]:
            x = x + options["shift"]
        return x * float(factor)

    with torch._dynamo.config.patch({limit: 64}):
        compiled = torch.compile(scaled, backend=backend)
        for number in range(60):
            compiled(torch.ones(4), str(number), {"shift": 3})


PROGRAMS: Dict[str, Callable[[str], None]] = {
    "bert": bert,
    "bert12": bert12,
    "generate": generate,
    "vit": vit,
    "unet": unet,
    "functions": functions,
    "storm": storm,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("backend")
    parser.add_argument("--dump", metavar="DIR", help="attach depyf, and let it write there")
    parser.add_argument("--profile", metavar="FILE", help="write what cProfile says of the part that compiles")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    attached: ContextManager[Any] = contextlib.nullcontext()
    imported = time.process_time()
    if options.dump:
        import depyf

        attached = depyf.prepare_debug(options.dump)
    profiler = None
    if options.profile:
        import cProfile

        profiler = cProfile.Profile()
        profiler.enable()
    with attached:
        entered = time.process_time()
        PROGRAMS[options.program](options.backend)
        ran = time.process_time()
    left = time.process_time()
    if profiler is not None:
        profiler.disable()
        profiler.dump_stats(options.profile)
    sys.stdout.flush()
    parts = {"import": imported, "enter": entered - imported, "run": ran - entered, "leave": left - ran}
    os.write(1, (json.dumps(parts) + "\n").encode())


if __name__ == "__main__":
    main()
