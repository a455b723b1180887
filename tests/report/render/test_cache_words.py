"""Where the seconds of a start from caches go, in a few lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import List, Optional

import pytest

from depyf.base.quick_dataclass import replace
from depyf.cli import main
from depyf.report.analysis.from_events import build_run
from depyf.report.model.cache_lookup import CacheLookup, ChangedPart
from depyf.report.model.run import Compilation, Phase, Run
from depyf.report.model.starts import saved_seconds, with_time_parts
from depyf.report.render.cache_words import start_lines
from depyf.report.render.markdown import index_markdown
from depyf.torch_trace.cache_lookups import FORCED_REASON
from depyf.torch_trace.events import Event

LOG = Path(__file__).parents[1] / "logs" / "torch_2_13.log.gz"


def phase(name: str, seconds: float, parent: Optional[int], compile_id: Optional[str] = "0/0") -> Phase:
    return Phase(compile_id, name, 0.0, seconds, False, parent)


def warm() -> Run:
    """A start in which the forward is loaded and the rest is compiled."""
    phases = (
        phase("dynamo", 10.0, None),
        phase("bytecode_tracing", 1.0, 0),
        phase("backend_compile", 8.0, 0),
        phase("inductor_codecache_torch_key", 0.5, 2),
        phase("create_aot_dispatcher_function", 7.0, 2),
        phase("PyCodeCache.load_by_key_path", 2.0, 4),
        phase("compile_file", 0.5, 5),
        phase("fx_codegen_and_compile", 3.5, 4),
        phase("code_gen", 3.25, 7),
        phase("PyCodeCache.load_by_key_path", 3.0, 8),
        phase("fx_codegen_and_compile", 0.5, 4),  # a hit: it loads, and generates no code
        phase("TritonBundler.read_and_emit", 0.25, 10),
        phase("compile_file", 30.0, None, None),  # in a worker
        phase("build_guards", 0.25, 0),
    )
    lookups = (
        CacheLookup("0/0", "aotautograd", "miss"),
        CacheLookup("0/0", "fx_graph", "hit", saved=20.0),
        CacheLookup(
            "0/0",
            "fx_graph",
            "miss",
            backward=True,
            reason="an earlier run had another key",
            changed=(ChangedPart("inductor_config[epilogue_fusion]", "True", "False"),),
            parts=("h gm: ...",),
        ),
        CacheLookup("0/0", "fx_graph", "bypass", reason="Higher order op"),
    )
    return with_time_parts(
        Run(compilations=(Compilation("0/0", None, seconds=10.0),), phases=phases, cache_lookups=lookups)
    )


def test_loading_is_told_from_compiling() -> None:
    (compilation,) = warm().compilations
    parts = {name: round(seconds, 3) for name, seconds in compilation.time_parts.items()}
    # Of the phase of AOTAutograd, 7 s, 2.25 s load code (with a compiler inside), 0.25 s look it up, the rest compiles.
    assert parts == {"trace": 1.75, "look up": 0.75, "load": 2.25, "guards": 0.25, "compile": 4.5, "rest": 0.5}


def test_a_start_says_what_missed_and_why() -> None:
    said = "\n".join(start_lines(warm()))
    assert "1 compilation, 10.00 s" in said
    assert "fx_graph: 1 hit, 1 miss, 1 bypass" in said
    assert "saved, as PyTorch's caches report it: 20.00 s" in said
    assert (
        "fx_graph, backward, miss: an earlier run had another key: inductor_config[epilogue_fusion] "
        "(True before, False now)" in said
    )
    assert "fx_graph bypass: Higher order op" in said
    assert "aotautograd miss: PyTorch does not report the parts of this cache's key" in said
    index = index_markdown(warm())
    assert "A start from caches: tracing the program" in index
    assert "PyTorch's caches report 20.00 s as saved" in index


def test_what_depyf_compiles_again_is_no_miss_of_the_program() -> None:
    run = replace(warm(), cache_lookups=(CacheLookup("0/0", "fx_graph", "miss", reason=FORCED_REASON),))
    assert "1 graph of these would have been a hit without depyf" in "\n".join(start_lines(run))


def test_a_long_start_has_thirty_lines_and_what_missed_comes_first() -> None:
    (one,) = warm().compilations
    ids = [f"{number}/0" for number in range(100)]
    compilations = tuple(replace(one, compile_id=each, time_parts={}, seconds=1.0) for each in ids)
    lookups = tuple(CacheLookup(each, "fx_graph", "hit") for each in ids[:-1])
    run = replace(warm(), compilations=compilations, cache_lookups=(*lookups, CacheLookup(ids[-1], "fx_graph", "miss")))
    lines = start_lines(run)
    assert len(lines) <= 30
    assert any(line.startswith("[99/0]") for line in lines[:8])
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith(" s")


def saved(*payloads: object, name: str = "fx_graph_cache_hit") -> List[Optional[float]]:
    events = [Event(name, "0/0", 0, {}, json.dumps(each), 0.0) for each in payloads]
    return [each.saved for each in build_run(events, []).cache_lookups]


def test_seconds_that_a_cache_reports_are_read() -> None:
    assert saved({"time_saved_ns": 1_500_000_000}, {"time_saved_ms": 250}, {"time_saved_ns": "x"}, [], {}) == [
        1.5,
        0.25,
        None,
        None,
        None,
    ]
    assert saved({"time_saved_ns": float("nan")}, {"time_saved_ns": 1e300}) == [None, None]


def test_inductors_part_of_what_aotautograd_saved_is_not_counted_twice() -> None:
    hits = [CacheLookup("0/0", "fx_graph", "hit", saved=each) for each in (3.0, 4.0)]
    assert saved_seconds(hits) == 7.0
    assert saved_seconds([*hits, CacheLookup("0/0", "aotautograd", "hit", saved=8.0)]) == 8.0
    assert saved_seconds([CacheLookup("0/0", "fx_graph", "miss")]) is None


def test_a_log_is_answered_without_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--caches", str(LOG)]) == 0
    said = capsys.readouterr().out
    assert "tracing the program (Dynamo)" in said
    assert len(said.splitlines()) <= 30
