"""Make docs/screenshots: the views of the page that the documents show, of five programs, in Chromium.

    python tools/record/make_screenshots.py                    # runs the examples first (needs PyTorch, takes minutes)
    python tools/record/make_screenshots.py --dumps FOLDER     # FOLDER/<example> are their dumps, with a manifest.json

The source view shows a line that broke a graph or was recompiled, where there is one. Every other program is shown in
dark mode.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Optional, Set, Tuple
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "src")]

from browser import VIEWS, browser, opened
from dumps import dumped

from depyf.report.model.run import Artifact, Place, Run
from depyf.report.render.page import TextOf, render_page
from depyf.report.render.page_data import with_sides

_SHOWN = re.compile(r"screenshots/(\w+)-(\w+)\.png")

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
            views = {view: each for view, each in addresses(run, text_of).items() if (program, view) in shown()}
            shoot(chromium, page, views, out, program, "dark" if number % 2 else "light")
        page = run_tutorial(Path(scratch, "tutorial"), arguments.dumps)
        shoot(chromium, page, {"source": "#source/f0/15"}, out, "tutorial", "light", width=1400, height=760)
        page = run_profile(Path(scratch, "profile"), arguments.dumps)
        shoot(chromium, page, {"run": "#run"}, out, "profile", "light")
    total = sum(path.stat().st_size for path in out.glob("*.png"))
    print(f"{len(list(out.glob('*.png')))} pictures, {total / 1e6:.1f} MB")


def shown() -> Set[Tuple[str, str]]:
    """Return the programs and views whose pictures the documents show."""
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return {found for each in documents for found in _SHOWN.findall(each.read_text(encoding="utf-8"))}


def run_example(program: str, scratch: Path) -> Path:
    """Dump one of the examples with its own caches: all is compiled."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(scratch / "cache"), "PYTHONPATH": paths}
    dump = scratch / program
    program_file = os.path.join("examples", f"{program}.py")
    command = [sys.executable, "-m", "depyf", "run", "-q", "--no-config", "-o", str(dump), program_file]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)
    return dump


def run_tutorial(folder: Path, dumps: Optional[str]) -> Path:
    """Write the page of the program at the beginning of docs/tutorial.md."""
    if dumps and (page := Path(dumps, "tutorial", "index.html")).exists():
        return page
    folder.mkdir()
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    for name, code in re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", text, re.DOTALL)[:2]:
        (folder / name).write_text(code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "depyf", "run", "-o", "before", "train.py"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment)
    return folder / "before" / "index.html"


def run_profile(folder: Path, dumps: Optional[str]) -> Path:
    """Write the page of the program at the beginning of docs/profile.md."""
    if dumps and (page := Path(dumps, "profile", "index.html")).exists():
        return page
    folder.mkdir()
    text = (ROOT / "docs" / "profile.md").read_text(encoding="utf-8")
    name, code = re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", text, re.DOTALL)[0]
    (folder / name).write_text(code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, name], check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment)
    return folder / "dump" / "index.html"


def addresses(run: Run, text_of: TextOf) -> Dict[str, str]:
    """Return the address of each view that is photographed: one that shows something, where the view has many."""
    place = worth_seeing(run)
    function = function_at(run, place)
    before, after = changed_stage(run, text_of)
    changed = next((r for r in run.recompiles), None)
    drawn = function if changed is None else changed.function
    passes = {"passes": "#passes"} if run.passes else {}
    return {
        **{view: f"#{view}" for view in VIEWS},
        **passes,
        "source": f"#source/f{function}/{place[1]}",
        "flow": f"#flow/f{drawn}",
        "story": f"#story/f{drawn}/8",
        "compilations": f"#compilations/{quote(run.compilations[-1].compile_id, safe='')}",
        "stages": f"#stages/{after.id}?diff={before.id}",
    }


def worth_seeing(run: Run) -> Place:
    """Return a line in a graph, of a function with breaks or recompiles if there is one, and in kernels if any is."""
    troubled = {each.function for each in run.recompiles}
    troubled |= {c.function for c in run.compilations for b in run.breaks if b.compile_id == c.compile_id}
    ids = [c.compile_id for c in run.compilations if c.graph and c.function in troubled]
    ids += [c.compile_id for c in run.compilations if c.graph]
    in_kernels = [p for id in ids for k in run.kernels if k.compile_id == id for p in k.places]
    in_graphs = [p for id in ids for a in run.artifacts if a.compile_id == id for link in a.links for p in link.places]
    return next(place for place in [*in_kernels, *in_graphs] if owns(run, place))


def changed_stage(run: Run, text_of: TextOf) -> Tuple[Artifact, Artifact]:
    """Return two neighbouring stages of which the later is a changed version of the earlier."""
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


def shoot(
    chromium: Any,
    page: Path,
    views: Dict[str, str],
    out: Path,
    program: str,
    scheme: str,
    *,
    width: int = 1280,
    height: int = 680,
) -> None:
    for view, address in views.items():
        with opened(chromium, page, address, width=width, height=height, scheme=scheme) as tab:
            tab.wait_for_timeout(300)
            tab.screenshot(path=str(out / f"{program}-{view}.png"))


if __name__ == "__main__":
    main()
