"""Every code object of the standard library is provably the same as itself, with work that grows with its size."""

from __future__ import annotations

import sysconfig
import warnings
from pathlib import Path
from types import CodeType
from typing import Callable, Iterator

import pytest
from cost import grows_like

from depyf.decompiler.verify import Finding, compare

pytestmark = pytest.mark.shared

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
MODULES = sorted(
    [
        *LIBRARY.glob("*.py"),
        *LIBRARY.glob("asyncio/*.py"),
        *LIBRARY.glob("email/*.py"),
        *LIBRARY.glob("test/test_[gpsw]*.py"),
    ]
)[::13]


def compiled(path: Path) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)


@pytest.mark.parametrize("path", MODULES, ids=[path.stem for path in MODULES])
def test_a_module_compiled_twice_is_proved_the_same(path: Path) -> None:
    try:
        original, candidate = compiled(path), compiled(path)
    except SyntaxError:
        pytest.skip("written to be no Python")
    assert compare(original, candidate).finding is Finding.EXACT
    comparison = compare(original, candidate, always_prove=True)
    assert [each.reason for each in comparison.walk() if not each.proved] == []


# --- cost


def straight(count: int) -> str:
    return "".join(f" x{index % 50} = g(a, b, [a, {index}])\n" for index in range(count))


def branchy(count: int) -> str:
    return "".join(f" if a.p{index % 7} and b:\n  x = g(a)\n else:\n  x = b[{index}]\n" for index in range(count))


def loops(count: int) -> str:
    body = " for i in a:\n  while b(i):\n   x = i\n   if x is None: break\n  try:\n   h(x)\n  except E as e:\n   b(e)\n"
    return body * count


def one_display(count: int) -> str:
    return " try:\n  return [" + ", ".join(f"g({index})" for index in range(count)) + "]\n except E: pass\n"


def one_try(count: int) -> str:
    return " try:\n" + "".join(f"  x{index % 30} = g(a)\n" for index in range(count)) + " except E:\n  h()\n"


def many_variables(count: int) -> str:
    return "".join(f" x{index} = g(a, b)\n" for index in range(count))


def functions_of(module: CodeType) -> Iterator[CodeType]:
    return (const for const in module.co_consts if isinstance(const, CodeType))


@pytest.mark.parametrize("body", [straight, branchy, loops, one_display, one_try, many_variables])
def test_the_work_for_each_operation_does_not_grow(body: Callable[[int], str]) -> None:
    def proof(count: int) -> Callable[[], object]:
        code = next(functions_of(compile("def f(a, b):\n" + body(count), "<test>", "exec")))

        def prove() -> None:
            assert compare(code, code, always_prove=True).proved

        return prove

    # The trace function that counts lines costs most of the time limit: 320 loops exceed it on 3.8.
    assert grows_like(proof, 40, 4) < 1.05
