"""Where functions stand with Dynamo's limits of recompilation, counted as Dynamo counts."""

from __future__ import annotations

import json
import weakref
from pathlib import Path
from typing import Any, List

import pytest
import torch
import torch._dynamo

import depyf
from depyf.diagnosis.recompile_limits import LimitStanding, in_words
from depyf.dynamo.entries.limits import standings, standings_of_frame
from depyf.dynamo.hooks import cache_entries

LIMIT = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
MOST = f"accumulated_{LIMIT}"


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def counts(code: Any) -> List[int]:
    return [each.entries for each in standings(code, {})]


def scaled(x: torch.Tensor, y: List[int]) -> torch.Tensor:
    return x * 2 + len(y)


def lengths(compiled: Any, number: int) -> None:
    for length in range(number):
        compiled(torch.ones(2), [0] * length)


def test_entries_count_until_dynamo_refuses() -> None:
    compiled = torch.compile(scaled, backend="eager")
    with torch._dynamo.config.patch(**{LIMIT: 3}):
        left = []
        for length in range(5):
            compiled(torch.ones(2), [0] * length)
            left += [each.left for each in standings(scaled.__code__, {})[:1]]
    # Two more calls than the limit: Dynamo made no entry for them. PyTorch 2.2 drops all entries then.
    number = len(cache_entries.cache_entries(scaled.__code__))
    dropped = [([2, 1, 0], 0)] if LIMIT == "cache_size_limit" else []
    assert (left, number) in [([2, 1, 0, 0, 0], 3), *dropped]


class Times(torch.nn.Module):
    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor


def times(net: Times, x: torch.Tensor, y: List[int]) -> torch.Tensor:
    return x * net.factor + len(y)


def test_each_module_guarded_by_identity_has_a_limit_of_its_own() -> None:
    # Which modules are guarded by identity differs with PyTorch: the entries here are marked as PyTorch marks them.
    compiled = torch.compile(times, backend="eager", dynamic=False)
    nets = [Times(2), Times(3), Times(4)]
    with torch._dynamo.config.patch(**{LIMIT: 2}):
        for net in nets:
            for length in range(2):
                compiled(net, torch.ones(2), [0] * length)
                newest = cache_entries.cache_entries(times.__code__)[0]
                newest.guard_manager.id_matched_objs = {"net": weakref.ref(net)}  # type: ignore[attr-defined]
        first, of_all = standings(times.__code__, {})
        # Dynamo has made all six entries with a limit of two: it counts two for each module.
        assert len(cache_entries.cache_entries(times.__code__)) == 6
    assert (first.entries, first.left, first.objects, of_all.entries) == (2, 0, 3, 6)
    assert str(first) == f"2 of 2 ({LIMIT}) for one of 3 modules: reached, nothing more is compiled"
    assert [counts_of_call(net) for net in (nets[0], Times(5))] == [[2, 6], [0, 6]]


def counts_of_call(net: Times) -> List[int]:
    return [each.entries for each in standings_of_frame(times.__code__, -1, {"net": net})]


@pytest.mark.skipif(not cache_entries.has_regions(), reason="PyTorch 2.13 has regions")
def test_each_region_has_a_limit_of_its_own() -> None:
    isolated = torch.compile(scaled, backend="eager", isolate_recompiles=True)
    lengths(isolated, 3)
    lengths(torch.compile(scaled, backend="eager"), 2)
    # The plain one uses no entry of the region: each has its own, and all count for the accumulated limit.
    assert counts(scaled.__code__) == [3, 5]


def test_a_dump_says_how_many_are_left(tmp_path: Path) -> None:
    compiled = torch.compile(scaled, backend="eager")
    with torch._dynamo.config.patch(**{LIMIT: 4}), depyf.prepare_debug(tmp_path):
        lengths(compiled, 3)
    (function,) = json.loads((tmp_path / "manifest.json").read_text())["functions"]
    assert function["limits"][0] == {"name": LIMIT, "value": 4, "entries": 3}
    index = (tmp_path / "index.md").read_text()
    assert "Cache entries, close to the limit" in index
    assert "3 of 4" in index
    assert "1 more, then nothing is compiled any more" in index


@pytest.mark.skipif(not cache_entries.has_regions(), reason="PyTorch 2.13 has an argument for the limit")
def test_a_dump_has_the_limit_that_torch_compile_was_given(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        lengths(torch.compile(scaled, backend="eager", recompile_limit=5), 2)
    (function,) = json.loads((tmp_path / "manifest.json").read_text())["functions"]
    assert function["limits"][0]["value"] == 5


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (3, "3 of 8 (recompile_limit)"),
        (4, "4 of 8 (recompile_limit): 4 more, then nothing is compiled any more"),
        (8, "8 of 8 (recompile_limit): reached, nothing more is compiled"),
    ],
)
def test_a_limit_is_said_where_half_of_it_is_used(entries: int, said: str) -> None:
    far = LimitStanding("accumulated_recompile_limit", 256, entries)
    assert in_words([LimitStanding("recompile_limit", 8, entries), far]) == said
    near = LimitStanding("accumulated_recompile_limit", 10, 9)
    assert in_words([LimitStanding("recompile_limit", 8, 1), near]) == str(near)
