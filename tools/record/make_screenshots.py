"""Makes docs/screenshots: each view of the page for four programs, in Chromium.

    python tools/record/make_screenshots.py                    # runs the examples first (needs PyTorch, takes minutes)
    python tools/record/make_screenshots.py --dumps FOLDER     # FOLDER/<example> are their dumps, with a manifest.json

The source view shows a line that broke a graph or was compiled again, where there is one. Every other program is shown
dark.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "src")]

from browser import browser, opened
from dumps import dumped

from depyf.report.model.run import Artifact, Place, Run
from depyf.report.model.sides import with_sides
from depyf.report.render.page import TextOf, render_page

PROGRAMS = ("branch", "breaks_and_recompiles", "mixture_of_experts", "bert")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dumps", metavar="FOLDER", help="folders of dumps made earlier, named after the examples")
    parser.add_argument("--out", metavar="FOLDER", default=str(ROOT / "docs" / "screenshots"))
    arguments = parser.parse_args()
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, browser() as chromium:
        for number, program in enumerate(PROGRAMS):
            dump = Path(arguments.dumps, program) if arguments.dumps else run_example(program, Path(scratch))
            run, text_of = dumped(dump)
            page = Path(scratch, f"{program}.html")
            page.write_text(render_page(run, text_of), encoding="utf-8")
            shoot(chromium, page, addresses(run, text_of), out, program, "dark" if number % 2 else "light")
    total = sum(path.stat().st_size for path in out.glob("*.png"))
    print(f"{len(list(out.glob('*.png')))} pictures, {total / 1e6:.1f} MB")


def run_example(program: str, scratch: Path) -> Path:
    """Dumps one of the examples, which take the folder as their argument, with caches of its own: all is compiled."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(scratch / "cache"), "PYTHONPATH": paths}
    dump = scratch / program
    command = [sys.executable, os.path.join("examples", f"{program}.py"), str(dump)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)
    return dump


def addresses(run: Run, text_of: TextOf) -> Dict[str, str]:
    """Where each view is worth a picture."""
    place = worth_seeing(run)
    function = function_at(run, place)
    before, after = changed_stage(run, text_of)
    changed = next((r for r in run.recompiles), None)
    drawn = function if changed is None else changed.function
    return {
        "overview": "#overview",
        "source": f"#source/f{function}/{place[1]}",
        "breaks": "#breaks",
        "recompiles": "#recompiles",
        "guards": "#guards",
        "flow": f"#flow/f{drawn}",
        "time": "#time",
        "stages": f"#stages/{after.id}?diff={before.id}",
    }


def worth_seeing(run: Run) -> Place:
    """A line in a graph, of a function that has breaks or recompiles if there is one, and in kernels if any is."""
    troubled = {each.function for each in run.recompiles}
    troubled |= {c.function for c in run.compilations for b in run.breaks if b.compile_id == c.compile_id}
    ids = [c.compile_id for c in run.compilations if c.graph and c.function in troubled]
    ids += [c.compile_id for c in run.compilations if c.graph]
    in_kernels = [p for id in ids for k in run.kernels if k.compile_id == id for p in k.places]
    in_graphs = [p for id in ids for a in run.artifacts if a.compile_id == id for link in a.links for p in link.places]
    return next(place for place in [*in_kernels, *in_graphs] if owns(run, place))


def changed_stage(run: Run, text_of: TextOf) -> Tuple[Artifact, Artifact]:
    """Two neighbouring stages of which the later is the earlier with something changed."""
    graphs = sorted((a for a in with_sides(run).artifacts if a.kind == "graph"), key=lambda a: a.order)
    likeness = {}
    for first in graphs:
        for second in graphs:
            same = first.compile_id == second.compile_id and first.backward == second.backward
            if same and first.order < second.order:
                one, other = ((text_of(each) or "").splitlines()[2:] for each in (first, second))
                likeness[first.id, second.id] = difflib.SequenceMatcher(None, one, other).ratio() if one != other else 0
    ids = max(likeness, key=lambda pair: likeness[pair])
    first, second = (next(a for a in graphs if a.id == each) for each in ids)
    return first, second


def owns(run: Run, place: Place) -> bool:
    return any(
        each.source == place[0] and each.first_line <= place[1] <= each.last_line
        for each in run.functions
        if each.resumes is None
    )


def function_at(run: Run, place: Place) -> int:
    return next(
        index
        for index, each in enumerate(run.functions)
        if each.resumes is None and each.source == place[0] and each.first_line <= place[1] <= each.last_line
    )


def shoot(chromium: Any, page: Path, views: Dict[str, str], out: Path, program: str, scheme: str) -> None:
    for view, address in views.items():
        with opened(chromium, page, address, width=1280, height=680, scheme=scheme) as tab:
            tab.wait_for_timeout(300)
            tab.screenshot(path=str(out / f"{program}-{view}.png"))


if __name__ == "__main__":
    main()
