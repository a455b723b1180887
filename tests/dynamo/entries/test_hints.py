"""What is read from captured graphs for the decompiler."""

from __future__ import annotations

from typing import List, Optional

import pytest

from depyf.dynamo.entries import hints

HEAD = "# a\nimport torch\n\nclass G(torch.nn.Module):\n    def forward(self, a):\n        b = a + 1;  a = None\n"
INNER = "\n    class inner(torch.nn.Module):\n        def forward(self, a):\n            return (a, a, a)\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEAD}        return (b,)\n", 1),
        (f"{HEAD}        return ()\n", 0),
        (f"{HEAD}        return [b, b]\n", 2),
        (f"{HEAD}        return ((b, a), b)\n{INNER}", 2),
        (f"{HEAD}        return pytree.tree_unflatten([b, b], self._out_spec)\n", None),
        (f"{HEAD}        return (\n            b, b)\n", 2),
        (f"{HEAD}        return\n", None),
        (f"{HEAD}        if a:\n            return b\n        return (b, b)\n", 2),
        ("# is no Python\n<", None),
    ],
)
def test_outputs_are_counted(text: str, expected: Optional[int]) -> None:
    assert hints.count_outputs(text) == expected


def test_no_tree_is_made_of_a_graph_for_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: List[str] = []
    original = hints.parse
    monkeypatch.setattr(hints, "parse", lambda text, mode="exec": parsed.append(text) or original(text, mode))
    assert hints.count_outputs(f"{HEAD}        return (b, b)\n{INNER}") == 2
    assert parsed == ["(b, b)"]
