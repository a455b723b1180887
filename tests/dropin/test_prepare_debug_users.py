"""``prepare_debug`` and ``install`` called as other projects call them."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.explain import dump_src, enable_debugging  # noqa: E402
from depyf.explain.global_variables import data  # noqa: E402
from depyf.explain.utils import get_current_compiled_fn_name, write_code_to_file_template  # noqa: E402


class Monitor:
    """vLLM's monitor: entered in one function, while others compile, and left in another, if it was entered."""

    context: Optional[Any] = None

    def start(self, path: Path, rank: int) -> None:
        target = path / f"rank_{rank}"
        target.mkdir(parents=True, exist_ok=True)
        self.context = depyf.prepare_debug(target.as_posix())
        self.context.__enter__()

    def end(self) -> None:
        if self.context is not None:
            self.context.__exit__(None, None, None)
            self.context = None


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.codes: List[Any] = []
        self.sources: List[str] = []

    def forward(self, x: Any) -> Any:
        return x.relu() + 1

    def bytecode_hook(self, old: Any, new: Any) -> None:
        """As vLLM's wrapper, which decompiles what it is given."""
        if old is not Model.forward.__code__:
            return
        frame = sys._getframe()
        while (frame.f_code.co_name, os.path.basename(frame.f_code.co_filename)) != ("_compile", "convert_frame.py"):
            assert frame.f_back is not None
            frame = frame.f_back
        if frame.f_locals["frame"].f_locals["self"] is self:
            self.codes.append(new)
            self.sources.append(depyf.decompile(new))


def test_the_monitor_of_vllm_with_its_own_bytecode_hook(tmp_path: Path) -> None:
    for rank in range(2):
        torch._dynamo.reset()
        model, monitor, x = Model(), Monitor(), torch.arange(-1.0, 2.0)
        handle = torch._dynamo.convert_frame.register_bytecode_hook(model.bytecode_hook)
        try:
            monitor.start(tmp_path, rank)
            result = torch.compile(model, backend="eager")(x)
            monitor.end()
            monitor.end()
        finally:
            handle.remove()
        assert torch.equal(result, x.relu() + 1)
        (source,) = model.sources
        assert "__compiled_fn_" in source
        directory = tmp_path / f"rank_{rank}"
        (transformed,) = directory.glob("__transformed_code*for_forward.py")
        assert transformed.name == "__transformed_code_0_for_forward.py"
        assert list(directory.glob("full_code_for_forward_0.py"))
        (captured,) = directory.glob("__compiled_fn*Captured_Graph*.py")
        assert int(captured.name.split(".")[0].replace("__compiled_fn_", "")) >= 0
    assert {path.name for path in tmp_path.iterdir()} == {"rank_0", "rank_1"}


def test_the_loader_is_read_by_signature_and_replaced_as_vllm_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.codecache import PyCodeCache

    signature = inspect.signature(enable_debugging.patched_load_by_key_path)
    assert list(signature.parameters)[:4] == ["key", "path", "linemap", "attrs"]
    assert any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values())

    def loader(key: str, path: str, linemap: Any = None, attrs: Any = None, **kwargs: Any) -> Any:
        template = os.path.join(data["dump_src_dir"], f"{get_current_compiled_fn_name()}.kernel_%s.py")
        copy = write_code_to_file_template(Path(path).read_text(), template)
        return data["unpatched_load_by_key_path"](key, copy, linemap, attrs, **kwargs)

    generated = tmp_path / "generated.py"
    generated.write_text("def call(args):\n    return args\n")
    loaded: Dict[str, Any] = {}

    known = inspect.signature(PyCodeCache.load_by_key_path).parameters
    options = {name: False for name in ("set_sys_modules",) if name in known}  # PyTorch 2.13 and later

    def backend(name: str) -> Callable[..., Any]:
        def compile_it(graph: Any, inputs: Any) -> Any:
            loaded[name] = PyCodeCache.load_by_key_path(f"users_{name}", str(generated), **options)
            return graph

        return compile_it

    def dumped(name: str) -> str:
        torch._dynamo.reset()
        with depyf.prepare_debug(tmp_path / name):
            torch.compile(lambda x: x + 1, backend=backend(name))(torch.ones(2))
        return os.path.relpath(loaded[name].__file__, tmp_path)

    assert dumped("ours").startswith("ours/__compiled_fn_")
    monkeypatch.setattr(enable_debugging, "patched_load_by_key_path", loader)
    theirs = dumped("theirs")
    assert theirs.startswith("theirs/__compiled_fn_")
    assert theirs.endswith(".kernel_0.py")
    monkeypatch.undo()
    assert dumped("ours_again").startswith("ours_again/__compiled_fn_")


def test_an_empty_path_is_an_error_and_fills_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="name of a directory"):
        depyf.prepare_debug("")
    with depyf.prepare_debug("."):
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert (tmp_path / "full_code_for__lambda__0.py").exists()
    assert data["dump_src_dir"] == str(tmp_path)


def test_dump_src_takes_the_code_of_a_compiled_method() -> None:
    model = Model()
    torch.compile(model, backend="eager")(torch.ones(2))
    assert "def transformed_forward(" in dump_src(Model.forward.__code__, sys.modules[__name__])


LOGGING = """
import torch, depyf
depyf.install()
depyf.install()

@torch.compile(backend="eager")
def scaled(x, factor=3):
    return x * factor

print(scaled(torch.ones(2)).tolist())
depyf.uninstall()
print(scaled(torch.ones(2, 2), 4).tolist())
"""


@pytest.mark.slow
def test_install_adds_source_to_the_bytecode_log_of_a_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(LOGGING)
    environment = {
        **os.environ,
        "TORCH_LOGS": "+bytecode",
        "PYTHONPATH": os.path.dirname(os.path.dirname(depyf.__file__)),
    }
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[3.0, 3.0]", "[[4.0, 4.0], [4.0, 4.0]]"]
    assert done.stderr.count("MODIFIED BYTECODE scaled") == 2
    assert done.stderr.count(f"DECOMPILED scaled ({program}") == 1
    assert "def scaled(x, factor):" in done.stderr
    assert re.search(r"(return|__temp_0, =) __compiled_fn_\d+", done.stderr)  # up to PyTorch 2.7 it unpacks the result
