"""Count the frames of ``tests/programs/frames_*.py`` that are proved: with hints, without, and resume functions.

    python tools/measure/measure_dynamo_frames.py [PROGRAM...] [--prepare-debug]

Dynamo compiles each program with the backend "eager", with and without graph breaks that split nested frames. Prints a
line for each code object that is not proved. With ``--prepare-debug`` the programs run under that instead, and the
counts are those of code that runs from its source and of code that runs from a listing.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from types import CodeType
from typing import List, Optional, Sequence

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "programs")]

import breaking_frames  # noqa: E402
import torch  # noqa: E402

import depyf  # noqa: E402
from depyf.decompiler.hints import Hints  # noqa: E402
from depyf.dynamo.entries.hints import hints_for  # noqa: E402


class Count:
    """The number of code objects of each kind, and how many of them are proved."""

    def __init__(self) -> None:
        self.all: Counter[str] = Counter()
        self.proved: Counter[str] = Counter()

    def add(self, kind: str, proved: bool, what: str) -> None:
        self.all[kind] += 1
        self.proved[kind] += proved
        if not proved:
            print(f"{kind}: {' '.join(what.split())[:300]}", flush=True)

    def decompile(self, kind: str, name: str, code: CodeType, hints: Optional[Hints] = None) -> None:
        try:
            found = depyf.decompile_code(code, hints=hints)
        except depyf.DecompilationError as error:
            self.add(kind, False, f"{name}: {error}")
            return
        self.add(kind, found.verdict.proved, f"{name}: {code.co_name}: {found.reason}")


def decompile_all(names: Sequence[str], nested: bool, count: Count) -> None:
    for name in names:
        originals: List[CodeType] = []
        for frame in breaking_frames.frames_of(name, nested):
            count.decompile("without hints", name, frame.transformed)
            hints = hints_for(frame.transformed, frame.original, {}, None, {})
            count.decompile("with hints", name, frame.transformed, hints)
            if not any(frame.original is known for known in originals):
                originals.append(frame.original)
                count.decompile("originals", name, frame.original)


def run_all(names: Sequence[str], nested: bool, count: Count) -> None:
    for name in names:
        case = breaking_frames.PROGRAMS[name]()
        torch._dynamo.reset()
        with tempfile.TemporaryDirectory() as directory:
            with breaking_frames.nested_breaks(nested), depyf.prepare_debug(directory):
                breaking_frames.run(case, torch.compile(case.function, backend="eager"), training=True)
            for path in sorted(Path(directory).glob("__transformed_code_*.py")):
                text = path.read_text()
                count.add("runs from its source", "Dynamo's own bytecode runs" not in text, f"{name}: {text[:300]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the frames of Dynamo's that are proved.")
    parser.add_argument("programs", nargs="*", help="names of programs (default: all)")
    parser.add_argument("--prepare-debug", action="store_true", help="run the programs under prepare_debug")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names, count = options.programs or list(breaking_frames.PROGRAMS), Count()
    for nested in [False, True] if breaking_frames.has_nested_breaks() else [False]:
        (run_all if options.prepare_debug else decompile_all)(names, nested, count)
    print(f"CPython {platform.python_version()}, PyTorch {torch.__version__}: {len(names)} programs")
    for kind, total in count.all.items():
        print(f"{kind}: {count.proved[kind]} of {total} proved")


if __name__ == "__main__":
    main()
