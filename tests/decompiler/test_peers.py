"""The comparison with other decompilers judges correctly, and runs; here this project is the only participant."""

from __future__ import annotations

import dis
import sys
from pathlib import Path
from typing import Any, Optional

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def peers() -> Any:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import peers

        return peers
    finally:
        sys.path.remove(str(BENCHMARKS))


ORIGINAL = "def f(a):\n    if a:\n        return g(a)\n    return a\n"


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (ORIGINAL, "identical"),
        ("def f(a):\n    x = not a\n    if not x:\n        return g(a)\n    return a\n", "proved"),
        (ORIGINAL.replace("g(a)", "h(a)"), "differs"),
        (ORIGINAL.replace("f(a):\n", "f(a, b):\n"), "differs"),
        ("def f(a:\n", "no code"),
        ("a = 1\n", "no code"),
        (None, "refused"),
    ],
)
def test_an_answer_is_judged(peers: Any, source: Optional[str], outcome: str) -> None:
    original = peers.function_of_module(compile(ORIGINAL, "<original>", "exec", dont_inherit=True))
    assert peers.judge(original, peers.Answer(0.0, source, None)) == outcome


def test_constants_that_are_equal_and_not_the_same_are_no_identical_bytecode(peers: Any) -> None:
    one, other = (
        peers.function_of_module(compile(f"def f(): return {value}", "<x>", "exec")) for value in ("1", "True")
    )
    assert not peers.same_bytecode(one, other)


def test_every_function_and_method_takes_part(peers: Any, tmp_path: Path, capsys: Any) -> None:
    module = tmp_path / "module.py"
    method = "class A:\n    @staticmethod\n    def method():\n        'Text.'\n        return 1\n\n"
    module.write_text(method + "def f(a):\n    return g(a)\n")
    (row,) = peers.compare_peers(["ours"], [str(module)], 20.0, tmp_path)
    assert (row["peer"], row["right"], row["identical"]) == ("ours", 1.0, 2)
    assert "2 functions and methods" in capsys.readouterr().out


def test_a_peer_that_takes_too_long_has_refused(peers: Any, tmp_path: Path) -> None:
    codes = list(peers.grown())[2:3]
    (answer,) = peers.answers("ours", peers.write_pycs(codes, tmp_path), 0.05, tmp_path)
    assert answer.error == "time limit"


ALTERED = """\
def f(self, key: str, *rest, limit=3) -> object:
    global seen
    seen = self.table[key].get("a", "b")
    try:
        import os.path as path
        return f"x{path}" + "c" * limit + f"{limit:>4.5}"
    except KeyError as error:
        return super().f(error, key=key, other=(1, 2, 3, "d", "e", -6))
"""


@pytest.mark.parametrize("mirror", ["plain", "names", "constants", "lines"])
def test_a_mirror_is_right_by_the_same_rules(peers: Any, tmp_path: Path, capsys: Any, mirror: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(ALTERED)
    (unit,), (plain,) = list(peers.functions([str(module)], mirror)), list(peers.functions([str(module)]))
    code, as_written = map(peers.function_of_module, (unit.code, plain.code))
    altered = {
        "names": not set(code.co_varnames) & set(as_written.co_varnames),
        "constants": code.co_consts != as_written.co_consts and code.co_names == as_written.co_names,
        "lines": peers.same_bytecode(code, as_written) and not any(line for _, line in dis.findlinestarts(code)),
    }
    assert altered.get(mirror, peers.same_bytecode(code, as_written))
    (row,) = peers.compare_peers(["ours"], [str(module)], 20.0, tmp_path, mirror)
    assert (row["identical"], row["right"], row["text"]) == (1, 1.0, 1.0), capsys.readouterr().out
