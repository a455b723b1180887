"""Makes docs/screenshots: each view of the page for four programs, in Chromium.

    python tools/make_screenshots.py                    # runs the examples first (needs PyTorch, takes minutes)
    python tools/make_screenshots.py --dumps FOLDER     # FOLDER/<example> are dumps of them, with a manifest.json

The source view shows a line that broke a graph or was compiled again, where there is one. Every other program is shown
dark.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "src")]

from browser import browser, opened
from dumps import dumped

from depyf.report.model import Place, Run
from depyf.report.page import render_page

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
            shoot(chromium, page, addresses(run), out, program, "dark" if number % 2 else "light")
    total = sum(path.stat().st_size for path in out.glob("*.png"))
    print(f"{len(list(out.glob('*.png')))} pictures, {total / 1e6:.1f} MB")


def run_example(program: str, scratch: Path) -> Path:
    """Dumps one of the examples. They take the folder as their argument."""
    dump = scratch / program
    command = [sys.executable, str(ROOT / "examples" / f"{program}.py"), str(dump)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=scratch)
    return dump


def addresses(run: Run) -> Dict[str, str]:
    """Where each view is worth a picture."""
    place = worth_seeing(run)
    function = function_at(run, place)
    artifact = next(a for a in run.artifacts if a.stage == "AFTER_POST_GRAD")
    before = next(a for a in run.artifacts if a.stage == "BEFORE_POST_GRAD" and a.compile_id == artifact.compile_id)
    changed = next((r for r in run.recompiles), None)
    drawn = function if changed is None else changed.function
    return {
        "overview": "#overview",
        "source": f"#source/f{function}/{place[1]}",
        "flow": f"#flow/f{drawn}",
        "recompiles": "#recompiles",
        "time": "#time",
        "stages": f"#stages/{artifact.id}?diff={before.id}",
    }


def worth_seeing(run: Run) -> Place:
    """A line in a graph, of a function that has breaks or recompiles if there is one."""
    troubled = {each.function for each in run.recompiles}
    troubled |= {c.function for c in run.compilations for b in run.breaks if b.compile_id == c.compile_id}
    ids = [c.compile_id for c in run.compilations if c.graph and (not troubled or c.function in troubled)]
    ids = ids or [c.compile_id for c in run.compilations if c.graph]
    return next(k.places[0] for k in run.kernels if k.compile_id == ids[0] and k.places and owns(run, k.places[0]))


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
        with opened(chromium, page, address, width=1280, height=800, scheme=scheme) as tab:
            tab.wait_for_timeout(300)
            tab.screenshot(path=str(out / f"{program}-{view}.png"))


if __name__ == "__main__":
    main()
