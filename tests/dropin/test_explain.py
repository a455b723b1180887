"""``depyf.explain`` keeps the names that other projects' compatibility modules read."""

from __future__ import annotations

import ast
import importlib
import threading
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.explain import dump_src, enable_debugging  # noqa: E402
from depyf.explain.global_variables import data  # noqa: E402
from depyf.explain.utils import (  # noqa: E402
    DynamoOptimizationResult,
    get_current_compiled_fn_name,
    lock_on_file,
    write_code_to_file_template,
)

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_data_is_that_of_now(tmp_path: Path) -> None:
    cache = importlib.import_module("torch._inductor.codecache").PyCodeCache
    own_loader = cache.load_by_key_path
    assert data["is_inside_prepare_debug"] is False
    assert data["unpatched_load_by_key_path"] == own_loader
    with depyf.prepare_debug(tmp_path):
        assert data["is_inside_prepare_debug"] is True
        assert data["dump_src_dir"] == str(tmp_path)
        assert data["unpatched_load_by_key_path"] == own_loader
        assert cache.load_by_key_path != own_loader
    assert data["dump_src_dir"] == str(tmp_path)
    assert set(data) >= {"dump_src_dir", "unpatched_load_by_key_path"}


def test_the_name_of_the_compiled_function_is_known_while_it_is_compiled(tmp_path: Path) -> None:
    names: List[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        names.append(get_current_compiled_fn_name())
        return graph

    def function(x: Any) -> Any:
        return x + 1

    assert get_current_compiled_fn_name() == "__compiled_fn_-1"
    with depyf.prepare_debug(tmp_path):
        torch.compile(function, backend=backend)(torch.ones(3))
    number = int(names[0].replace("__compiled_fn_", ""))
    assert list(tmp_path.glob(f"__compiled_fn_{number}.Captured_Graph.*.py"))
    assert get_current_compiled_fn_name() == "__compiled_fn_-1"


def test_a_template_is_filled_with_the_first_free_number(tmp_path: Path) -> None:
    template = str(tmp_path / "code_%s.py")
    assert write_code_to_file_template("x = 1\n", template) == str(tmp_path / "code_0.py")
    assert write_code_to_file_template("x = 1\n", template) == str(tmp_path / "code_0.py")
    assert write_code_to_file_template("x = 2\n", template) == str(tmp_path / "code_1.py")
    assert (tmp_path / "code_1.py").read_text() == "x = 2\n"


def function_with_a_break(x: Any) -> Any:
    y = x.sin()
    print("middle")
    return y + x


def test_dump_src_tells_the_story_of_a_function_that_was_compiled_before() -> None:
    torch.compile(function_with_a_break, backend="eager")(torch.ones(3))
    source = dump_src(function_with_a_break.__code__, None)
    defined = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    assert {"__guard_0_for_function_with_a_break", "transformed_function_with_a_break"} <= defined
    assert {"__transformed_code_0_for_function_with_a_break", "function_with_a_break"} <= defined
    assert any(name.startswith("__resume_at_") for name in defined)


class Scaled(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2


def test_dump_src_takes_functions_and_what_torch_compile_makes_of_them() -> None:
    compiled = torch.compile(function_with_a_break, backend="eager")
    compiled(torch.ones(3))
    expected = dump_src(function_with_a_break.__code__)
    assert dump_src(function_with_a_break, None) == expected
    assert dump_src(compiled) == expected
    module = torch.compile(Scaled(), backend="eager")
    module(torch.ones(3))
    assert "def transformed_forward(" in dump_src(module)
    assert dump_src(Scaled().forward) == dump_src(module)
    with pytest.raises(TypeError, match=r"explain\.dump_src"):
        dump_src(3)  # type: ignore[arg-type]


def test_the_names_of_old_are_those_of_today() -> None:
    from depyf.explain import enhance_logging

    assert enable_debugging.prepare_debug is depyf.prepare_debug
    assert enable_debugging.debug is depyf.debug
    assert enhance_logging.install is depyf.install
    assert enhance_logging.uninstall is depyf.uninstall


def test_what_dynamo_made_of_a_function_has_its_source() -> None:
    torch.compile(function_with_a_break, backend="eager")(torch.ones(3))
    result = DynamoOptimizationResult(function_with_a_break.__code__, module=None)
    assert result.function_name == "function_with_a_break"
    assert result.to_src() == dump_src(function_with_a_break)
    assert result.to_data()["source"] == result.to_src()


def test_a_lock_on_a_file_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    template, inside, most = str(tmp_path / "code_%s.py"), 0, 0

    def count() -> None:
        nonlocal inside, most
        for _ in range(20):
            with lock_on_file(template):
                inside += 1
                most = max(most, inside)
                time.sleep(0.0005)
                inside -= 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == 1
    assert [path.name for path in tmp_path.iterdir()] == ["code_%s.py.lock"]


@pytest.mark.inductor
def test_another_projects_loader_is_used_when_prepare_debug_is_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Dict[str, Any] = {}

    def loader(key: str, path: str, linemap: Any = None, attrs: Any = None, **kwargs: Any) -> Any:
        seen[get_current_compiled_fn_name()] = data["dump_src_dir"]
        return data["unpatched_load_by_key_path"](key, path, linemap, attrs, **kwargs)

    monkeypatch.setattr(enable_debugging, "patched_load_by_key_path", loader)

    def function(x: Any) -> Any:
        return x + 1

    with depyf.prepare_debug(tmp_path):
        torch.compile(function)(torch.ones(3))
    assert list(seen.values()) == [str(tmp_path)]
    assert "__compiled_fn_-1" not in seen


@pytest.mark.inductor
def test_our_own_loader_loads_from_the_dump(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return x * 3

    with depyf.prepare_debug(tmp_path):
        compiled = torch.compile(function)
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 3.0))
    (kernel,) = tmp_path.glob("*.kernel_*.py")
    loaded = enable_debugging.patched_load_by_key_path("key of a test", str(kernel))
    assert loaded.__file__ == str(kernel)
