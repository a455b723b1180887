"""The page fills in the default values that a manifest omits; they come from the dataclasses of ``report/model``."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import typing
from pathlib import Path
from typing import Any, Iterator, Tuple

import pytest

import depyf
from depyf.report.model import run
from depyf.report.model.manifest import defaults_of_lists, json_text
from depyf.report.render.colours import colours_of_graphs

SCRIPT = Path(depyf.__file__).parent / "report" / "render" / "web" / "script" / "model.js"


def parts_of(cls: Any, path: str = "") -> Iterator[Tuple[str, Any]]:
    """Yield each list of parts below a class of the model, by its path, with the class of the parts."""
    for name, kind in typing.get_type_hints(cls).items():
        item, *rest = typing.get_args(kind) or (None,)
        if rest == [Ellipsis] and dataclasses.is_dataclass(item):
            yield path + name, item
            yield from parts_of(item, f"{path}{name}.")


PARTS = dict(parts_of(run.Run))


def test_the_lists_are_those_of_the_model() -> None:
    assert set(defaults_of_lists()) == set(PARTS)
    assert {"compilations.guards", "recompiles.failed", "artifacts.modules"} < set(PARTS)
    lists = {field.name for field in dataclasses.fields(run.Run) if "Tuple[" in str(field.type)}
    assert lists - {"command", "notes", "failures", "cache_settings", "settings"} == {
        name for name in PARTS if "." not in name
    }


def test_one_part_alone_is_in_no_list() -> None:
    """Its defaults are not filled in: the page has memory in words of its own (``memory_words.for_page``)."""
    kinds = {(path, each.name): str(each.type) for path, cls in PARTS.items() for each in dataclasses.fields(cls)}
    models = {cls.__name__ for cls in vars(run).values() if dataclasses.is_dataclass(cls)}
    inside = {at for at, kind in kinds.items() if "Tuple" not in kind and set(re.findall(r"\w+", kind)) & models}
    assert inside == {("artifacts", "memory")}


def bare(path: str) -> Any:
    """Return a part of this list that has its default values, and no other."""
    fields = dataclasses.fields(PARTS[path])
    return PARTS[path](**{each.name: None for each in fields if each.name not in defaults_of_lists()[path]})


@pytest.mark.parametrize("path", list(PARTS))
def test_the_page_has_the_defaults_that_the_manifest_omits(path: str) -> None:
    whole = json.dumps(dataclasses.asdict(bare(path)))
    assert {**json.loads(json.dumps(defaults_of_lists()[path])), **json.loads(json_text(bare(path)))} == json.loads(
        whole
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_page_fills_in_the_defaults_of_lists_in_lists() -> None:
    recompile = run.Recompile("0/1", 3, (run.FailedEntryGuard("0/0", "n == 1", "n is 2"), bare("recompiles.failed")))
    filled = re.search(r"^function filled.*?^}", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert filled is not None
    program = (
        f"{filled.group()}\nconst defaults = {json.dumps(defaults_of_lists())};\n"
        f'console.log(JSON.stringify(filled([{json_text(recompile)}], "recompiles", defaults)));'
    )
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert json.loads(done.stdout) == json.loads(json.dumps([dataclasses.asdict(recompile)]))


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


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_headline_of_a_comparison_says_less_time_and_fewer_breaks() -> None:
    text = SCRIPT.with_name("ranks.js").read_text(encoding="utf-8")
    found = re.search(r"^function numbersInWords.*?^const listed[^\n]*$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    numbers = [["graphs", 1, 2, "", True], ["graph breaks", 3, 1, "", True], ["guards", 3, 4, "", False]]
    numbers += [["compile time", 3.0, 1.0, "s", True, [3, 3], [1, 1], "faster"], ["  a phase", 1.0, 3.0, "s", True]]
    program = f"{found.group()}\nconsole.log(numbersInWords({json.dumps(numbers)}));"
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert done.stdout == "more graphs; fewer graph breaks; less compile time\n"
