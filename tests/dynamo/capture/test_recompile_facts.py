"""All guards that fail are noted in a recompilation, within bounds."""

from __future__ import annotations

import io
from typing import Any, List

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

from torch_versions import REPORTS_COMPILE_IDS  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.capture import recompile_facts  # noqa: E402


def recompiled(kinds: str) -> List[str]:
    """Return what ``watch`` says of recompilations in each of which three things are new."""

    def function(x: Any, kind: str, other: str) -> Any:
        return x + (1 if kind == "a" else 2) + (3 if other == "a" else 4)

    compiled = torch.compile(function, backend="eager")
    with depyf.watch(stream=io.StringIO()) as watched:
        for number, kind in enumerate(kinds):
            compiled(torch.ones((2,) * (number + 1)), kind, kind)
    return [each.words for each in watched.happened]


@pytest.mark.skipif(not REPORTS_COMPILE_IDS, reason="PyTorch before 2.5 does not say which entry a reason is about")
@pytest.mark.parametrize("bound", ["_MOST_GUARDS", "_MOST_ENTRIES"])
def test_the_latest_entry_is_always_searched(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recompile_facts, bound, 1)
    for words in recompiled("abc"):
        assert "kind is '" in words
        assert "other is '" in words
        assert "has " in words


def test_of_many_guards_that_fail_the_first_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recompile_facts, "_MOST_FAILING", 1)
    (words,) = recompiled("ab")
    assert "; " not in words
