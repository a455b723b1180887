"""Inductor's generated modules, loaded from the dump directory instead of from its cache."""

from __future__ import annotations

import functools
import os
import re
import sys
from types import FunctionType
from typing import Callable, Optional

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.capture.launches import note_module
from depyf.dynamo.capture.records import KernelFile
from depyf.dynamo.capture.relocate import distinguished
from depyf.dynamo.capture.session import Receivers
from depyf.dynamo.capture.what_runs import RUNS, RUNS_ELSEWHERE, note_what_runs
from depyf.dynamo.hooks import frames, generated_code
from depyf.dynamo.hooks.attribution import current_compile_id, current_piece
from depyf.dynamo.hooks.patching import Undo, replace_attribute
from depyf.dynamo.hooks.safely import report_failure, safely
from depyf.torch_trace import file_names
from depyf.torch_trace.events import FORWARD_METRICS
from depyf.torch_trace.provenance import generated_lines_event

keep_builtins(globals())

Loader = Callable[..., object]

_CALL = regex(r"^(?:def call\(|call = |class Runner\b)", re.MULTILINE)
"""A mark of the wrapper of a whole graph. Single kernels stay where Inductor keeps its data about them."""

_MEASURED = regex(r"^def benchmark_all_configs\(", re.MULTILINE)
"""A mark of a single kernel that Inductor measures: its module has a ``call``, too, and makes no other kernels."""

_CACHE_PATH_COMMENT = regex(r"^(\s*# kernel path:) .*$", re.MULTILINE)


def watch_kernels(receivers: Receivers) -> Optional[Undo]:
    """Start to load wrapper modules from copies in the dump directory; return the function that stops it.

    ``PyCodeCache.load_by_key_path`` imports each module that Inductor has written into its cache, on a cold cache and
    on a warm one.
    """
    cache = generated_code.pycode_cache()
    if cache is None or not hasattr(cache, "load_by_key_path"):
        return None
    original = cache.load_by_key_path
    # depyf 0.20 let other projects replace its loader as ``explain.enable_debugging.patched_load_by_key_path``. Nobody
    # has, where that module is not imported.
    chooser = sys.modules.get("depyf.explain.enable_debugging")
    chosen = getattr(chooser, "patched_load_by_key_path", None) or loading_copies(original, receivers)

    @functools.wraps(original)
    def load_by_key_path(*args: object, **kwargs: object) -> object:
        return chosen(*args, **kwargs)

    return replace_attribute(cache, "load_by_key_path", staticmethod(load_by_key_path))


def loading_copies(original: Loader, receivers: Receivers) -> Loader:
    """Return a loader that calls ``original(key, path, ...)`` with the path of a copy in the dump directory."""

    @functools.wraps(original)
    def load_by_key_path(key: str, path: str, *args: object, **kwargs: object) -> object:
        copy = _copied(receivers, path)
        if copy is None:
            module = original(key, path, *args, **kwargs)
            note_module(path, module)
            _note_lines(receivers, path)  # with stepping=False the original runs, and a session may have its lines
            return module
        # PyTorch 2.13 passes ``set_sys_modules`` as well: other arguments go through untouched.
        try:
            module = original(key, copy, *args, **kwargs)
            note_module(copy, module)
            _distinguish(module, copy)
            _note_lines(receivers, copy)
            return module
        except synchronous() as error:
            failed = error
        # The copy can't be imported. If the module itself is wrong, the original raises the same error to the program;
        # if only the copy is, the program goes on and the failure is reported.
        module = original(key, path, *args, **kwargs)
        report_failure("loading an Inductor kernel from the dump", failed)
        return module

    return load_by_key_path


@safely("noting where the lines of an Inductor kernel come from")
def _note_lines(receivers: Receivers, path: str) -> None:
    lines = generated_code.lines_of_generated(path)
    for session in receivers():
        for kernel in session.records(KernelFile, current_compile_id()):
            if lines and (kernel.generated == path or os.path.basename(kernel.path) == os.path.basename(path)):
                session.add(generated_lines_event(kernel.compile_id, os.path.basename(kernel.path), lines))


def _distinguish(module: object, path: str) -> None:
    """Make the functions of equal modules distinguishable for debuggers: similar graphs have the same kernels.

    With Inductor's ``graph_partition`` ``call`` is a method of a class ``Runner`` in the module.
    """
    namespaces = [vars(module), *(vars(value) for value in vars(module).values() if isinstance(value, type))]
    for namespace in namespaces:
        for function in namespace.values():
            if isinstance(function, FunctionType) and function.__code__.co_filename == path:
                function.__code__ = distinguished(function.__code__)


@safely("dumping an Inductor kernel")
def _copied(receivers: Receivers, path: str) -> Optional[str]:
    """Return the path of the copy of a wrapper module that is to run; None for other modules, and if it can't be
    written.
    """
    with open(path, encoding="utf-8") as file:
        generated = file.read()
    if not _is_wrapper(generated):
        return None
    compile_id, piece = current_compile_id(), current_piece()
    running: Optional[str] = None
    for session in receivers():
        function = session.function_name(compile_id)
        index = session.directory.take_number(f"{function}.kernel")
        text = text_of_copy(generated, RUNS if session.stepping else RUNS_ELSEWHERE)
        copy = session.directory.write(file_names.kernel_file(function, index), text)
        if copy is not None:
            backward = frames.loads_backward()
            session.add(KernelFile(compile_id, function, index, copy, path, text, backward, session.stepping, piece))
            if compile_id is not None and session.events(FORWARD_METRICS, compile_id):
                # The compilation has ended: this is a backward, or a piece of a split graph, that is compiled when it
                # is first called. The graph files say "had not been compiled" so far.
                note_what_runs(session, compile_id)
            running = copy if session.stepping else running
    return running


def _is_wrapper(generated: str) -> bool:
    """Return whether a module that Inductor generated is the wrapper of a graph, and not a single kernel.

    A kernel that is benchmarked has a ``call(args)`` of its own; but a wrapper may have the benchmark of a kernel in a
    string, and then it has an ``AsyncCompile`` that compiles the kernel.
    """
    if _MEASURED.search(generated) and "AsyncCompile" not in generated:
        return False
    return _CALL.search(generated) is not None


def text_of_copy(generated: str, status: str) -> str:
    """Return the text of the copy of a wrapper module, with ``status`` as a comment. Line numbers do not change: torch
    refers to them."""
    # The path is another one in every run and for every user, and dumps are compared with ``diff -r``.
    text = _CACHE_PATH_COMMENT.sub(r"\1 in Inductor's cache", generated)
    # The status goes into the first line if that is a comment (``# AOT ID: ['0_inference']``) or empty, else to the
    # end.
    first, newline, rest = text.partition("\n")
    if first.startswith("#"):
        return f"{first}; {status}{newline}{rest}"
    if not first:  # PyTorch 2.2
        return f"# {status}{newline}{rest}"
    return f"{text.rstrip()}\n\n# {status}\n"
