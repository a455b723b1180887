"""The import paths that other projects use, of depyf 0.20 and of one release after a move."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from typing import Any

import pytest

import depyf
from depyf.decompiler import api

MOVED = {
    "depyf.errors": ("DecompilationError",),
    "depyf.hints": ("Hints",),
    "depyf.result": ("Decompilation", "Verdict"),
}


@pytest.mark.parametrize("name", api.__all__)
def test_the_decompiler_has_its_names_in_one_place(name: str) -> None:
    decompiler = importlib.import_module("depyf.decompiler")
    assert getattr(decompiler, name) is getattr(api, name)
    assert name in dir(decompiler)
    if name in depyf.__all__:
        assert getattr(depyf, name) is getattr(api, name)


@pytest.mark.parametrize(("module", "names"), MOVED.items())
def test_names_that_have_moved_are_the_same_objects_at_their_old_path(module: str, names: Any) -> None:
    for name in names:
        assert getattr(importlib.import_module(module), name) is getattr(depyf, name)


def test_what_was_pickled_under_an_old_path_can_be_read() -> None:
    assert pickle.loads(b"cdepyf.result\nVerdict\n(S'exact'\ntR.") is depyf.Verdict.EXACT
    error = pickle.loads(b"cdepyf.errors\nDecompilationError\n(S'why'\ntR.")
    assert type(error) is depyf.DecompilationError
    assert str(error) == "why"
    assert type(pickle.loads(pickle.dumps(error))) is depyf.DecompilationError


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("depyf.explain.enable_debugging", "prepare_debug"),
        ("depyf.explain.enable_debugging", "debug"),
        ("depyf.explain.enhance_logging", "install"),
        ("depyf.explain.enhance_logging", "uninstall"),
        ("depyf.utils", "DecompilationError"),
        ("depyf.utils", "decompile_code"),
    ],
)
def test_old_paths_have_the_objects_of_depyf(module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) is getattr(depyf, name)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("depyf.explain", "dump_src"),
        ("depyf.explain.enable_debugging", "patched_load_by_key_path"),
        ("depyf.explain.global_variables", "data"),
        (
            "depyf.explain.utils",
            "DynamoOptimizationResult get_current_compiled_fn_name lock_on_file write_code_to_file_template",
        ),
        ("depyf.optimization", "TorchCompileWrapperWithCustomDispatcher"),
        (
            "depyf.utils",
            "collect_all_code_objects decompile_ensure get_code_owner get_function_signature safe_create_directory",
        ),
    ],
)
def test_old_paths_have_their_names(module: str, names: str) -> None:
    for name in names.split():
        assert hasattr(importlib.import_module(module), name), name


@pytest.mark.parametrize("options", [(), ("-OO",)])
def test_every_path_can_be_the_first_import_and_imports_no_torch(options: Any) -> None:
    paths = "decompiler utils explain explain.enable_debugging explain.enhance_logging explain.global_variables "
    paths += "explain.utils optimization errors hints result"
    program = (
        "import importlib, sys\n"
        "for path in sys.argv[1:]:\n"
        "    for name in [name for name in sys.modules if name.partition('.')[0] == 'depyf']:\n"
        "        del sys.modules[name]\n"
        "    importlib.import_module('depyf.' + path)\n"
        "from depyf.decompiler import Decompiler, DecompilationError, decompile\n"
        "import depyf.decompiler as d\n"
        "print('torch' in sys.modules, d.Decompiler is Decompiler, decompile(eval('lambda: 1')).strip())"
    )
    command = [sys.executable, *options, "-c", program, *paths.split()]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    assert ended.stdout == "False True lambda: 1\n"
