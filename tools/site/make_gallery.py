"""Run the programs of the gallery, and write their pages and build/gallery/gallery.json.

    python tools/site/make_gallery.py [--out DIR] [NAME...]

Needs PyTorch (and transformers for one page; without it that page is left out, with a message). Pages that are there
already are kept: remove the folder to write them anew. Nothing else is changed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional, Tuple

ROOT = Path(__file__).resolve().parents[2]
FILE = re.compile(r"<!-- file: ([\w.]+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)

EXAMPLES: Dict[str, Tuple[str, str]] = {
    "branch": ("A branch on data", "examples/branch.py"),
    "breaks_and_recompiles": ("Breaks and recompilations of many kinds", "examples/breaks_and_recompiles.py"),
    "training": ("A training loop", "examples/training.py"),
    "mixture_of_experts": ("A mixture of experts", "examples/mixture_of_experts.py"),
    "bert": ("A small BERT", "examples/bert.py"),
}
OTHERS: Dict[str, Tuple[str, str]] = {
    "tutorial_before": ("The tutorial's model, slow", "the first `model.py` of the tutorial"),
    "tutorial_after": ("The tutorial's model, fixed", "the last `model.py` of the tutorial"),
    "tutorial_difference": ("Both compared", "`depyf diff` of the two"),
    "ranks": ("Two ranks that differ", "a log of `TORCH_TRACE` of two ranks"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gallery")
    options = parser.parse_args()
    titles = {**EXAMPLES, **OTHERS}
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.names or titles:
            if not (options.out / f"{name}.html").exists():
                print(f"gallery: {name}", flush=True)
                write(name, options.out, Path(scratch))
    rows = [
        {"name": name, "title": title, "program": program, "headline": headline(options.out / f"{name}.txt")}
        for name, (title, program) in titles.items()
        if (options.out / f"{name}.html").exists()
    ]
    (options.out / "gallery.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


def write(name: str, out: Path, scratch: Path) -> None:
    """Write the page ``name`` and, beside it, the headline of the run."""
    work = scratch / "program"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    page = out / f"{name}.html"
    if name == "tutorial_difference":
        before, after = tutorial_dump(0, scratch), tutorial_dump(1, scratch)
        called = depyf("diff", str(before), str(after), "--html", str(page), cwd=scratch)
        said = "the graph break and all recompilations are gone" if called is not None else ""
    elif name == "ranks":
        called = depyf("report", str(ROOT / "tests/report/logs/ranks"), "-o", str(work), cwd=scratch)
        shutil.copy(work / "index.html", page)
        said = "; ".join(re.findall(r"^! (.*)$", called or "", re.MULTILINE))
    else:
        if name in EXAMPLES:
            shutil.copy(ROOT / "examples" / f"{name}.py", work)
            called = depyf("run", "--no-config", "-o", "dump", f"{name}.py", cwd=work)
            dump = work / "dump"
        else:
            dump = tutorial_dump(1 if name.endswith("after") else 0, scratch)
            called = ""
        if called is None:
            print(f"gallery: {name} is left out, because its program failed", file=sys.stderr)
            return
        shutil.copy(dump / "index.html", page)
        found = re.search(r"^\*\*(.*)\*\*$", (dump / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
        said = found.group(1) if found is not None else ""
    (out / f"{name}.txt").write_text(said + "\n", encoding="utf-8")


def tutorial_dump(version: int, scratch: Path) -> Path:
    """Return the dump of the tutorial's program with its first (0) or last (1) model."""
    work = scratch / f"tutorial_{version}"
    if not work.exists():
        work.mkdir()
        files: Dict[str, List[str]] = {}
        for name, text in FILE.findall((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")):
            files.setdefault(name, []).append(text)
        (work / "model.py").write_text(files["model.py"][-version])
        (work / "train.py").write_text(files["train.py"][0])
        depyf("run", "--no-config", "-o", "dump", "train.py", cwd=work)
    return work / "dump"


def depyf(*arguments: str, cwd: Path) -> Optional[str]:
    """Return what the command prints, None where it fails. 1 is no failure: ``diff`` has found differences."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "TORCHINDUCTOR_CACHE_DIR": str(cwd / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "depyf", *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )
    if done.returncode not in ((0, 1) if arguments[0] == "diff" else (0,)):
        sys.stderr.write(done.stderr[-2000:])
        return None
    return done.stdout


def headline(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


if __name__ == "__main__":
    sys.exit(main())
