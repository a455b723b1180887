"""The reasons of a recompilation, as PyTorch's log lists them."""

from __future__ import annotations

import json
from typing import List

from depyf.torch_trace.events import Event
from depyf.torch_trace.recompiles import REMOVED, failed_guards, reasons_of


def event(reasons: List[str]) -> Event:
    return Event("recompile_reasons", "0/2", 0, {}, json.dumps(reasons), 0.0)


def test_an_entry_that_depyf_has_removed_is_no_reason() -> None:
    real = "0/0: tensor 'x' size mismatch at index 0. expected 64, actual 3"
    recompilation = event([f"0/1: ___check_cache_invalidated: {REMOVED}", real])
    assert reasons_of(recompilation) == [real]
    assert [each.entry for each in failed_guards(recompilation)] == ["0/0"]
    assert failed_guards(event([f"0/1: {REMOVED}"])) == []


def test_a_text_that_is_no_list_is_the_reason() -> None:
    assert reasons_of(Event("recompile_reasons", "0/1", 0, {}, "{not JSON", 0.0)) == ["{not JSON"]
