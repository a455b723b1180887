"""The page fills in what a manifest leaves out: the defaults of ``model.js`` are those of ``report/model/run.py``."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict

import pytest

import depyf
from depyf.report.model import run
from depyf.report.model.graph_pass import Pass
from depyf.report.render.colours import colours_of_graphs

SCRIPT = Path(depyf.__file__).parent / "report" / "render" / "web" / "script" / "model.js"

CLASSES = {
    "artifacts": run.Artifact,
    "breaks": run.GraphBreak,
    "cache_lookups": run.CacheLookup,
    "compilations": run.Compilation,
    "cudagraph_rerecords": run.CudaGraphRerecord,
    "cudagraph_skips": run.CudaGraphSkip,
    "fallbacks": run.Fallback,
    "findings": run.Finding,
    "functions": run.Function,
    "kernels": run.Kernel,
    "passes": Pass,
    "phases": run.Phase,
    "shapes": run.ShapeEvent,
    "recompiles": run.Recompile,
    "sources": run.Source,
    "GUARD": run.Guard,
    "FAILED": run.FailedGuard,
}

NOT_READ = {("artifacts", "links")}
"""Links are not in the manifest of a page: they are packed beside it."""


def objects_in(text: str) -> Dict[str, Dict[str, Any]]:
    """The defaults by the names of the lists, and of the constants with those of what is inside of them."""
    found: Dict[str, Dict[str, Any]] = {}
    for name, body in re.findall(r"^const ([A-Z]+) = (\{.*?\});", text, re.MULTILINE | re.DOTALL):
        quoted = re.sub(r"(?<=[{,\s])(\w+):", r'"\1":', body)
        value = json.loads(re.sub(r",(\s*\})", r"\1", quoted))
        found.update(value if name == "DEFAULTS" else {name: value})
    return found


def defaults_of(cls: Any) -> Dict[str, Any]:
    values: Dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            values[field.name] = list(field.default) if isinstance(field.default, tuple) else field.default
        elif field.default_factory is not dataclasses.MISSING:
            values[field.name] = field.default_factory()
    return values


def test_these_are_all_lists_of_a_run() -> None:
    lists = {field.name for field in dataclasses.fields(run.Run) if "Tuple[" in str(field.type)}
    assert set(objects_in(SCRIPT.read_text(encoding="utf-8"))) == set(CLASSES)
    assert lists - {"command", "notes", "failures", "cache_settings"} == {name for name in CLASSES if name.islower()}


@pytest.mark.parametrize("name", list(CLASSES))
def test_the_page_has_the_defaults_of_the_model(name: str) -> None:
    theirs = objects_in(SCRIPT.read_text(encoding="utf-8"))[name]
    ours = {field: value for field, value in defaults_of(CLASSES[name]).items() if (name, field) not in NOT_READ}
    assert {field: theirs.get(field, "missing") for field in ours} == ours
    fields = {field.name for field in dataclasses.fields(CLASSES[name])}
    assert set(theirs) <= fields
    # What has no default in the model is left out where it is None, or empty.
    assert all(not value for field, value in theirs.items() if field not in ours)


def test_graphs_have_one_palette() -> None:
    """The notebook reads its colours from the page's style sheet, which has one for each that the page gives out."""
    colours = colours_of_graphs()
    assert colours[:2] == ("47,111,219", "217,115,13")
    assert len(set(colours)) == len(colours)
    assert f"const COLOURS = {len(colours)};" in SCRIPT.read_text(encoding="utf-8")
    style = (SCRIPT.parent.parent / "style" / "base.css").read_text(encoding="utf-8")
    assert re.findall(r"\.graph-(\d+) ", style) == [str(number) for number in range(len(colours))]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_timeline_takes_more_phases_than_a_call_takes_arguments() -> None:
    program = """
        const innerWidth = 1200;
        const VIEWS = [], el = (tag, more, ...inner) => ({ inner }), fill = () => {}, chip = el, seconds = String;
        const grouped = (items, key) => new Map(items.length ? [[key(items[0]), items]] : []);
    """
    program += (SCRIPT.parent / "time.js").read_text()
    program += """
        const phase = (at) => ({ name: "p", start: at, seconds: 1, parent: null, compile_id: null, backward: false });
        const run = { phases: Array.from({ length: 200000 }, (_, at) => phase(at)), phaseWords: {} };
        for (const stretched of [false, true])
          console.log(JSON.stringify(timeline(run, nested(run), { chosen: null, stretched, all: false }).inner[0]));
    """
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert '["0"]' in done.stdout
    assert '["200000"]' in done.stdout
