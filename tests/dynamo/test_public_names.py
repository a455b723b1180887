"""The cost and the names of ``import depyf``."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import depyf

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def python(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, env=environment)


def test_importing_depyf_imports_neither_torch_nor_its_own_torch_side() -> None:
    done = python("import depyf, sys; print('torch' in sys.modules, 'depyf.dynamo' in sys.modules)")
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("name", ["prepare_debug", "debug", "install"])
def test_without_torch_the_error_says_what_to_install(name: str) -> None:
    arguments = "'dump'" if name == "prepare_debug" else ""
    done = python(f"import sys; sys.modules['torch'] = None\nimport depyf\ndepyf.{name}({arguments})")
    assert f"ImportError: depyf.{name} looks into torch.compile and needs PyTorch" in done.stderr
    assert "pip install torch" in done.stderr


def test_every_public_name_exists_and_unknown_ones_do_not() -> None:
    for name in depyf.__all__:
        assert getattr(depyf, name) is not None
        assert name in dir(depyf)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        depyf.nothing  # noqa: B018


def test_a_public_name_is_in_every_list_and_documented() -> None:
    tree = ast.parse(Path(depyf.__file__).read_text())
    (typed,) = (each for each in tree.body if isinstance(each, ast.If))
    for_type_checkers = {
        alias.name: each.module for each in typed.body if isinstance(each, ast.ImportFrom) for alias in each.names
    }
    differ = {name for name, _ in set(for_type_checkers.items()) ^ set(depyf._HOMES.items())}
    assert not differ, f"_HOMES and the imports for type checkers differ: {sorted(differ)}"
    assert sorted(depyf._HOMES) == depyf.__all__, "_HOMES and __all__ (sorted) differ"
    page = (Path(__file__).resolve().parents[2] / "docs" / "calls.md").read_text()
    functions = [name for name in depyf.__all__ if name.islower()]
    missing = [name for name in functions if f"`depyf.{name}(" not in page and f"`with depyf.{name}(" not in page]
    assert not missing, f"the table of docs/calls.md lacks {missing}"


def test_a_question_is_documented_and_has_tests() -> None:
    root = Path(__file__).resolve().parents[2]
    questions = {name for name, home in depyf._HOMES.items() if ".questions." in home}
    assert len(questions) > 5
    answers = (root / "docs" / "answers.md").read_text()
    for name in questions:
        assert (
            re.search(rf"^## `.*depyf\.{name}\(", answers, re.MULTILINE) or (root / "docs" / f"{name}.md").exists()
        ), f"{name} has no section in docs/answers.md and no page of its own"
        test = root / "tests" / "dynamo" / "questions" / f"test_{name}.py"
        assert test.exists(), f"{name} has no {test.name}"


@pytest.mark.torch
@pytest.mark.parametrize("name", ["prepare_debug", "debug", "watch", "find_nonfinite", "trace", "probe", "expect"])
def test_what_is_printed_of_a_context_manager_says_something(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from depyf.dynamo.hooks import frame_evaluation

    if name in ("find_nonfinite", "probe") and not frame_evaluation.has_stances():
        pytest.skip("PyTorch before 2.6")
    arguments = {"prepare_debug": [tmp_path], "probe": ["y"]}.get(name, [])
    stream = {"stream": io.StringIO()} if name in ("watch", "find_nonfinite", "probe") else {}
    options = {"breaks": 0} if name == "expect" else stream
    manager = getattr(depyf, name)(*arguments, **options)
    texts = [str(manager), repr(manager)]
    if name != "debug":
        with manager:
            torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
            texts += [str(manager), repr(manager)]
    texts += [str(manager), repr(manager)]
    assert all(texts)
    assert not any(" at 0x" in text for text in texts)


@pytest.mark.torch
def test_a_watch_prints_what_has_happened(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    torch._dynamo.reset()
    scaled = torch.compile(lambda x, n: x * n, backend="eager", dynamic=False)
    scaled(torch.ones(2), 2)
    with depyf.watch(stream=io.StringIO()) as watched:
        scaled(torch.ones(2), 3)
    first, *rest = str(watched).splitlines()
    assert "n is not 2, which it was compiled for" in first
    assert rest[0] == "depyf watched: 1 recompile, 0 graph breaks, 0 fallbacks"
