"""Measure the cost of the manifest, the index and the page, for a transformer of 24 layers with Inductor.

    python tools/measure/measure_report.py [--layers N] [--backend BACKEND] [--keep DUMP_FOLDER]

Prints the compile time, the time to write each at the end of the session, and the sizes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.capture import provenance  # noqa: E402
from depyf.dynamo.dump import manifest, session_files  # noqa: E402


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        x = x + self.out((q @ k.transpose(-2, -1) / 8.0).softmax(dim=-1) @ v)
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, layers: int, width: int = 64) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.head = nn.Linear(width, 256)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


SPENT: Dict[str, float] = {}


def timed(owner: Any, name: str, title: str) -> None:
    """Add up the seconds that ``owner.name`` takes under ``title``."""
    original: Callable[..., Any] = getattr(owner, name)

    def measured(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            SPENT[title] = SPENT.get(title, 0.0) + time.perf_counter() - start

    setattr(owner, name, measured)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--keep", default="")
    arguments = parser.parse_args()
    timed(provenance.Provenance, "of", "noting stacks and launches, while it compiles")
    timed(provenance.LaunchNotes, "_note", "noting stacks and launches, while it compiles")
    timed(session_files, "write_manifest", "all files at the end")
    for name, title in (("build_run", "the model"), ("to_json", "manifest.json"), ("render_page", "index.html")):
        timed(manifest, name, title)
    torch.manual_seed(0)
    model = Transformer(arguments.layers)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary)
        with depyf.prepare_debug(folder):
            start = time.perf_counter()
            torch.compile(model, backend=arguments.backend)(torch.randint(0, 256, (2, 16))).mean().backward()
            compiled = time.perf_counter() - start
        print(f"{'first forward and backward':48} {compiled:8.2f} s")
        for title, seconds in sorted(SPENT.items(), key=lambda pair: -pair[1]):
            print(f"{title:48} {seconds:8.2f} s  {100 * seconds / compiled:5.1f} %")
        sizes = {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
        for name in ("manifest.json", "index.md", "index.html"):
            print(f"{name:48} {sizes.get(name, 0) / 1e6:8.2f} MB")
        print(f"{'all files (' + str(len(sizes)) + ')':48} {sum(sizes.values()) / 1e6:8.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
