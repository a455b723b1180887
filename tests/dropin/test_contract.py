"""What other projects use of depyf, as checks that run alone: ``python test_contract.py``, or pytest with this file.

Copy this one file, and run it with the Python, the PyTorch and the depyf that you pin. It needs nothing else of depyf's
repository, no GPU, no network and no C++ compiler. Each function below is one promise, its docstring says which and to
whom. As a program it prints a line for each promise and what the imports cost; its exit status is 1 when a promise is
broken. docs/contract.md says what the promises are for.

The names were taken from the public sources of vLLM (``vllm/compilation/depyf_compat.py``, ``monitor.py``,
``wrapper.py``, ``tests/``), of SGLang, of TorchLens (``torchlens/bridge/depyf.py``), and from the documentation of
depyf 0.20.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import statistics
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

try:
    import pytest

    pytestmark = pytest.mark.torch
except ImportError:  # as a program, on a machine without pytest
    pass

NAMES: Dict[str, str] = {
    "depyf": "prepare_debug debug install uninstall decompile Decompiler",
    "depyf.decompiler": "Decompiler DecompilationError decompile",
    "depyf.explain": "dump_src",
    "depyf.explain.enable_debugging": "prepare_debug debug patched_load_by_key_path",
    "depyf.explain.enhance_logging": "install uninstall",
    "depyf.explain.global_variables": "data",
    "depyf.explain.utils": (
        "get_current_compiled_fn_name write_code_to_file_template lock_on_file DynamoOptimizationResult"
    ),
    "depyf.optimization": "TorchCompileWrapperWithCustomDispatcher",
    "depyf.utils": (
        "decompile_ensure get_function_signature get_code_owner collect_all_code_objects safe_create_directory"
    ),
}
"""The names by the module that they are imported from."""

GLOBS = (
    "__transformed_code*for_forward.py",  # vLLM
    "__compiled_fn*Captured_Graph*.py",  # vLLM
    "__compiled_fn*Forward_graph*.py",  # vLLM
    "__compiled_fn*before_split*.py",  # vLLM, SGLang: shown by their backends
    "__compiled_fn*.kernel_*.py",  # vLLM
    "full_code_for_forward_*.py",  # the documentation of 0.20
)
"""Patterns that match at least one file of a dump, in its folder itself."""


def _model() -> Any:
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.relu() + 1

    torch._dynamo.reset()
    return Model()


def _backend(graph: Any, inputs: Any) -> Any:
    """Show the graph as the backends of vLLM and SGLang do, let one module be loaded as Inductor does, and compile."""
    from torch._dynamo.backends.debugging import aot_eager
    from torch._dynamo.utils import lazy_format_graph_code

    lazy_format_graph_code("before_split", graph)
    _load_generated("call = None\n")
    return aot_eager(graph, inputs)


def _load_generated(text: str) -> Any:
    """Load a module as Inductor loads the code that it has generated."""
    from torch._inductor.codecache import PyCodeCache

    known = inspect.signature(PyCodeCache.load_by_key_path).parameters
    options = {"set_sys_modules": False} if "set_sys_modules" in known else {}  # PyTorch 2.13 and later
    return PyCodeCache.load_by_key_path(*PyCodeCache.write(text), **options)


def _dump(directory: Path, **options: Any) -> None:
    import torch

    import depyf

    model, x = _model(), torch.arange(-1.0, 2.0)
    with depyf.prepare_debug(str(directory), **options):
        result = torch.compile(model, backend=_backend)(x)
    assert torch.equal(result, x.relu() + 1)


def test_names_are_where_they_were() -> None:
    """Each name of NAMES can be imported (vLLM, TorchLens, programs written for 0.20)."""
    missing = [
        f"{module}.{name}"
        for module, names in NAMES.items()
        for name in names.split()
        if not hasattr(importlib.import_module(module), name)
    ]
    assert missing == []


def test_importing_depyf_imports_no_torch() -> None:
    """``import depyf`` imports neither PyTorch nor another package (engines import it before they set up devices)."""
    program = (
        "import sys\nbefore = set(sys.modules)\nimport depyf\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(getattr(sys, 'stdlib_module_names', ())) - {'depyf'}))"
    )
    printed = _run(program)
    assert "'torch'" not in printed, printed
    if sys.version_info >= (3, 10):  # which has the names of the standard library's modules
        assert printed.strip() == "[]", printed


def test_decompile_gives_python_of_what_dynamo_wrote() -> None:
    """``depyf.decompile(code)`` of the code that a bytecode hook of Dynamo gets is Python source (vLLM's wrapper)."""
    import torch

    import depyf

    sources: List[str] = []
    handle = torch._dynamo.convert_frame.register_bytecode_hook(lambda old, new: sources.append(depyf.decompile(new)))
    try:
        torch.compile(_model(), backend="eager")(torch.ones(2))
    finally:
        handle.remove()
    assert any("__compiled_fn_" in source for source in sources), sources
    for source in sources:
        ast.parse(source)


def test_files_have_the_names_that_are_searched_for(tmp_path: Path) -> None:
    """A dump has a file for each pattern of GLOBS, and the first number in ``__compiled_fn_<n>`` is its id (vLLM)."""
    _dump(tmp_path)
    assert [pattern for pattern in GLOBS if not list(tmp_path.glob(pattern))] == []
    for path in tmp_path.glob("__compiled_fn*.py"):
        parts = str(path.name).replace(".", "_").split("_")
        assert int(next(part for part in parts if part.isdigit())) >= 0


def test_the_options_of_0_20_are_taken(tmp_path: Path) -> None:
    """``prepare_debug(dump_src_dir, clean_wild_fx_code=..., log_bytecode=...)``, also as keyword (TorchLens)."""
    _dump(tmp_path, clean_wild_fx_code=False, log_bytecode=False)
    assert list(tmp_path.glob("__transformed_code*for_forward.py"))


def test_a_second_dump_into_the_folder_writes_files(tmp_path: Path) -> None:
    """After ``torch._dynamo.reset()`` a dump into the same folder writes files (TorchLens compares times)."""
    _dump(tmp_path)
    old = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.py")}
    for path in old:
        os.utime(path, ns=(1, 1))
    _dump(tmp_path)
    assert any(path.stat().st_mtime_ns != 1 for path in tmp_path.rglob("*") if path.is_file())


def test_a_session_can_be_entered_and_left_by_hand(tmp_path: Path) -> None:
    """``__enter__`` and ``__exit__(None, None, None)`` in two functions, in a folder that is not there yet (vLLM)."""
    import torch

    import depyf

    context = depyf.prepare_debug((tmp_path / "rank_0").as_posix())
    context.__enter__()
    torch.compile(_model(), backend="eager")(torch.ones(2))
    context.__exit__(None, None, None)
    assert list((tmp_path / "rank_0").glob("__transformed_code*for_forward.py"))


def test_the_loader_takes_what_inductor_passes() -> None:
    """``patched_load_by_key_path`` takes key, path, linemap, attrs and any keyword, so vLLM does not replace it."""
    from depyf.explain import enable_debugging

    parameters = inspect.signature(enable_debugging.patched_load_by_key_path).parameters
    assert list(parameters)[:4] == ["key", "path", "linemap", "attrs"]
    assert any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())


def test_a_module_that_is_loaded_in_a_session_is_dumped(tmp_path: Path) -> None:
    """``PyCodeCache.load_by_key_path`` in a session loads the module of a graph (it has a ``call``) and dumps it as
    ``*.kernel_*.py``, outside of a compilation, too; afterwards Inductor's own function is back (vLLM)."""
    from torch._inductor.codecache import PyCodeCache

    import depyf

    own = PyCodeCache.load_by_key_path
    with depyf.prepare_debug(str(tmp_path)):
        module = _load_generated("call = 'of this module'\n")
    assert module.call == "of this module"
    assert any(f"call = {module.call!r}" in path.read_text() for path in tmp_path.rglob("*.kernel_*.py"))
    assert PyCodeCache.load_by_key_path == own


def test_another_loader_is_used_where_it_was_assigned(tmp_path: Path) -> None:
    """A function that was assigned to ``patched_load_by_key_path`` is used, and finds its data (vLLM for 0.20)."""
    from depyf.explain import enable_debugging
    from depyf.explain.global_variables import data
    from depyf.explain.utils import get_current_compiled_fn_name, write_code_to_file_template

    def loader(key: str, path: str, linemap: Any = None, attrs: Any = None, **options: Any) -> Any:
        template = os.path.join(data["dump_src_dir"], get_current_compiled_fn_name() + ".kernel_%s.py")
        dumped = write_code_to_file_template(Path(path).read_text(), template)
        return data["unpatched_load_by_key_path"](key, dumped, linemap, attrs, **options)

    own, enable_debugging.patched_load_by_key_path = enable_debugging.patched_load_by_key_path, loader
    try:
        _dump(tmp_path)
    finally:
        enable_debugging.patched_load_by_key_path = own
    assert list(tmp_path.glob("__compiled_fn_*.kernel_0.py"))


# --- the size: printed, and not checked


IMPORTS: Tuple[Tuple[str, str, str], ...] = (
    ("import depyf", "", "import depyf"),
    ("what vLLM's depyf_compat imports, after torch", "import torch._inductor.codecache", "\n".join(
        f"from {module} import {name}"
        for module, name in (
            ("depyf", "prepare_debug"),
            ("depyf.explain.enable_debugging", "patched_load_by_key_path"),
            ("depyf.explain.global_variables", "data"),
            ("depyf.explain.utils", "get_current_compiled_fn_name, write_code_to_file_template"),
        )
    )),
    ("decompile one function", "", "import depyf; depyf.decompile(lambda x: x + 1)"),
    ("enter and leave prepare_debug, after torch", "import torch._inductor.codecache", "import depyf, tempfile\n"
     "with depyf.prepare_debug(tempfile.mkdtemp()): pass"),
)  # fmt: skip
"""What is done, what was imported before, and the program."""

_MEASURE = """
import sys, time, os
{before}
known = set(sys.modules)
start = time.process_time()
{program}
seconds = time.process_time() - start
own = [each for name, each in sys.modules.items() if name not in known and name.partition(".")[0] == "depyf"]
size = sum(os.path.getsize(each.__file__) for each in own if getattr(each, "__file__", None))
print(len(set(sys.modules) - known), len(own), seconds * 1000, size)
"""


def _run(program: str) -> str:
    # Without its .pyc files an import is a compilation.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sizes(repeats: int = 5) -> List[str]:
    """Return a line for each of ``IMPORTS``: modules, those of depyf, milliseconds of CPU (median), bytes of source."""
    lines = []
    for name, before, program in IMPORTS:
        printed = [_run(_MEASURE.format(before=before, program=program)).split()[-4:] for _ in range(repeats)]
        new, own, _, size = printed[-1]
        milliseconds = statistics.median(float(each[2]) for each in printed)
        lines.append(
            f"{name}: {new} modules, {own} of depyf, {milliseconds:.0f} ms of CPU, {int(size):,} bytes of source"
        )
    return lines


def main() -> int:
    """Check each promise, print a line for each, and what the imports cost; return the exit status."""
    promises: Dict[str, Callable[..., None]] = {
        name: value for name, value in globals().items() if name.startswith("test_") and callable(value)
    }
    broken = 0
    for name, promise in promises.items():
        try:
            with tempfile.TemporaryDirectory() as folder:
                promise(**({"tmp_path": Path(folder)} if "tmp_path" in inspect.signature(promise).parameters else {}))
            verdict = "kept"
        except Exception:
            broken, verdict = broken + 1, "BROKEN"
            traceback.print_exc()
        print(f"{verdict:7} {name[len('test_') :].replace('_', ' ')}", flush=True)
    print("\n".join(sizes()))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
