"""Why PyTorch's caches miss: the parts of a key that differ from those of an earlier run, and of another run."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest

pytest.importorskip("torch")

from depyf.dynamo.capture import cache_keys
from depyf.dynamo.capture.cache_keys import CacheKeys
from depyf.dynamo.hooks import torch_settings
from depyf.report.analysis.compilation_events import cache_lookups
from depyf.report.diff.comparison import compare
from depyf.report.diff.comparison_output import comparison_lines
from depyf.report.diff.matching import ComparedRun
from depyf.report.model.cache_lookup import ChangedPart
from depyf.report.model.manifest import from_json, to_json
from depyf.report.model.run import Compilation, Function, Run, SourceFile
from depyf.report.render.markdown import index_markdown
from depyf.torch_trace.cache_lookups import FORCED_MISS
from depyf.torch_trace.events import Event

FUSED = "[abc] inductor_config[epilogue_fusion]: True"
PLAIN = "[def] inductor_config[epilogue_fusion]: False"
GRAPH = "[123] gm: GraphModule()\n\n\ndef forward(self, x):\n    return (x,)"
ADDRESS = "[777] fx_kwargs[get_decomp_fn]: <function table at 0x7f1935042a20>"
ELSEWHERE = "[777] fx_kwargs[get_decomp_fn]: <function table at 0x7f0000000000>"


@pytest.fixture(autouse=True)
def folder_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_settings, "cache_directory", lambda: str(tmp_path))


def lookup(state: str, key: str = "f1", components: Any = (GRAPH, FUSED), **more: Any) -> Event:
    payload = json.dumps({"key": key, "components": list(components), **more})
    return Event(f"fx_graph_cache_{state}", "0/0", 0, {}, payload, 0.0)


def started(_: str) -> Optional[Event]:
    return Event("dynamo_start", "0/0", 0, {"stack": [{"name": "f", "filename": "f.py", "line": 3}]}, None, 0.0)


def run_of(*events: Event) -> Run:
    """The run of a process of its own, which gets these events."""
    keys = CacheKeys(started)
    received: List[Event] = [keys.of(event) for event in events]
    assert all(each.payload is None for each in received if each.name != FORCED_MISS)
    lookups, settings = cache_lookups(received)
    return Run(
        sources=(SourceFile("f.py", "def f(x):\n    return x\n"),),
        functions=(Function("f", "f", 0, 1, 2),),
        compilations=(Compilation("0/0", 0),),
        cache_lookups=lookups,
        cache_settings=settings,
    )


def test_a_miss_names_what_changed_since_the_last_run() -> None:
    (first,) = run_of(lookup("miss")).cache_lookups
    assert (first.state, first.reason, first.changed) == ("miss", "", ())
    run = run_of(lookup("miss", "f2", (GRAPH, PLAIN)))
    (second,) = run.cache_lookups
    assert second.reason == "an earlier run had another key"
    assert [(each.name, each.before, each.now) for each in second.changed] == [
        ("inductor_config[epilogue_fusion]", "True", "False")
    ]
    assert "inductor_config[epilogue_fusion] (True before, False now)" in index_markdown(run)
    assert from_json(to_json(run)).cache_lookups == run.cache_lookups


def test_a_changed_graph_is_named_without_its_text() -> None:
    run_of(lookup("miss"))
    run = run_of(lookup("miss", "f2", (GRAPH.replace("123", "124") + "  # longer", FUSED)))
    assert [(each.name, each.before) for each in run.cache_lookups[0].changed] == [("gm", "...")]
    assert "an earlier run had another key: gm\n" in index_markdown(run)


def test_an_entry_that_is_gone_and_guards_that_do_not_hold_are_told_apart() -> None:
    run_of(lookup("miss", components=(GRAPH, ADDRESS, FUSED)))
    (gone,) = run_of(lookup("miss", components=(GRAPH, ELSEWHERE, FUSED))).cache_lookups
    assert "no longer in the cache" in gone.reason
    assert not gone.changed
    (guards,) = run_of(lookup("miss", cache_status_detailed="guard_miss")).cache_lookups
    assert "guards on sizes" in guards.reason


def test_a_hit_needs_no_reason_and_a_bypass_has_that_of_pytorch() -> None:
    (hit,) = run_of(lookup("hit")).cache_lookups
    assert hit.reason == ""
    bypass = lookup("bypass", components=(), cache_bypass_reason="Can't cache <lambda> at 0x7f1935042a20")
    assert run_of(bypass).cache_lookups[0].reason == "Can't cache <lambda> at 0x0"


def test_what_depyf_has_compiled_again_is_said() -> None:
    forced = Event(FORCED_MISS, "0/0", 0, {"key": "f1"}, None, 0.0)
    (only,) = run_of(forced, lookup("miss")).cache_lookups
    assert only.reason.startswith("an entry with this key was there: depyf")


def test_the_second_look_up_of_a_function_is_compared_with_the_second() -> None:
    run_of(lookup("miss", "f1"), lookup("miss", "f2", (GRAPH, PLAIN)))
    lookups = run_of(lookup("miss", "f1"), lookup("miss", "f2", (GRAPH, PLAIN))).cache_lookups
    assert [each.changed for each in lookups] == [(), ()]


def test_methods_of_one_name_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("class A:\n    def f(self):\n        pass\nclass B:\n    def f(self):\n        pass\n")

    def compiled(line: int, graph: str) -> Tuple[ChangedPart, ...]:
        stack = [{"name": "f", "filename": str(path), "line": line}]
        keys = CacheKeys(lambda _: Event("dynamo_start", "0/0", 0, {"stack": stack}, None, 0.0))
        return cache_lookups([keys.of(lookup("miss", graph, (f"[{graph}] gm: G()",)))])[0][0].changed

    assert compiled(2, "1") == ()
    assert compiled(5, "2") == ()
    assert [each.name for each in compiled(2, "3")] == ["gm"]


def test_damaged_records_and_payloads_change_nothing(tmp_path: Path) -> None:
    run_of(lookup("miss"))
    for path in tmp_path.rglob("*.json"):
        path.write_text("[1", encoding="utf-8")
    assert run_of(lookup("miss")).cache_lookups[0].reason == ""
    event = Event("fx_graph_cache_miss", "0/0", 0, {}, "{not json", 0.0)
    assert run_of(event).cache_lookups[0].state == "miss"


def test_a_key_that_cannot_be_stored_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    run_of(lookup("miss"))
    monkeypatch.setattr(cache_keys, "write_atomically", full)
    (only,) = run_of(lookup("miss", "f2", (GRAPH, PLAIN))).cache_lookups
    assert [each.name for each in only.changed] == ["inductor_config[epilogue_fusion]"]


def test_two_runs_are_compared_and_are_the_same_program() -> None:
    sides = [
        ComparedRun(name, run, lambda artifact: None)
        for name, run in (("a", run_of(lookup("miss"))), ("b", run_of(lookup("miss", "f2", (GRAPH, PLAIN)))))
    ]
    compared = compare(*sides)
    assert compared.same
    (line,) = [each for each in comparison_lines(compared) if each.startswith("cache")]
    assert line == (
        "cache of f (f.py): fx_graph: miss in both; "
        "the keys differ in: inductor_config[epilogue_fusion] (True before, False now)"
    )
