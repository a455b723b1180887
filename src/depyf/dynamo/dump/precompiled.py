"""Dump functions that were compiled before ``prepare_debug`` and are called inside it, as far as possible. The code
that runs does not change: their files are copies, and say so.
"""

from __future__ import annotations

import os
import weakref
from types import CodeType
from typing import Dict, Iterator, List, Optional, Set, Tuple

from depyf.base.quick_dataclass import replace
from depyf.dynamo.capture.graphs import write_graph
from depyf.dynamo.capture.kernels import text_of_copy
from depyf.dynamo.capture.records import EarlierFunction, KernelFile, TransformedCode
from depyf.dynamo.capture.rendering import render
from depyf.dynamo.capture.session import Session
from depyf.dynamo.capture.what_runs import DOES_NOT_RUN
from depyf.dynamo.hooks import cache_entries, known_code, torch_settings
from depyf.dynamo.hooks.cache_entries import global_scope
from depyf.dynamo.hooks.nested_code import qualified_name
from depyf.dynamo.hooks.readable_graphs import readable_text
from depyf.dynamo.hooks.recovered import Kernel, Recovered, recover
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.store.directory import DumpDirectory
from depyf.dynamo.store.names import compiled_fn_number, file_stem
from depyf.torch_trace import file_names
from depyf.torch_trace.stages import Stage, with_status

_EARLIER = "Compiled before prepare_debug was entered."

_copied: Dict[Tuple[int, int], weakref.ref[CodeType]] = {}
"""The code objects that have a copy in a directory, by the ids of both."""


def dump_earlier(session: Session) -> None:
    """Dump what ran in this session and was not compiled in it."""
    ours = {id(record.running_code()) for record in session.records(TransformedCode)}
    reported = {record.function for record in session.records(EarlierFunction)}
    for code in session.codes_that_ran():
        if id(code) not in ours and not _is_in(session.directory, code):
            safely("dumping a function that was compiled earlier")(_dump)(session, code, reported)


def _is_in(directory: DumpDirectory, code: CodeType) -> bool:
    """Return whether the directory has it already, as the file that it runs from or as a copy; else record a copy."""
    key = id(directory), id(code)
    copied = _copied.get(key)
    _copied[key] = weakref.ref(code, lambda _: _copied.pop(key, None))
    return directory.is_in(code.co_filename) or (copied is not None and copied() is code)


def _dump(session: Session, code: CodeType, reported: Set[str]) -> None:
    original = known_code.original_of(code)
    entry = (
        next((e for e in cache_entries.cache_entries(original) if e.code is code), None)
        if original is not None
        else None
    )
    if original is not None and session.only is not None and not session.only(original):
        return
    if original is None or entry is None:
        return  # it has left the cache, or never was in it: torch has forgotten whose code it is
    scope = global_scope(entry.guard_manager)
    names = [name for name in code.co_names if compiled_fn_number(name) is not None]
    _write_transformed(session, original, code, entry.compile_id, names)
    for name in names:
        if name in scope:
            function = f"__compiled_fn_{compiled_fn_number(name)}"
            _write_compiled(session, function, entry.compile_id, recover(scope[name]), reported)


def _write_transformed(
    session: Session, original: CodeType, code: CodeType, compile_id: Optional[str], names: List[str]
) -> None:
    function = file_stem(original.co_name)
    index = session.directory.take_number(f"transformed code of {function}")
    stem, name = file_names.transformed_stem(index, function), file_names.transformed_file(index, function)
    rendering = render(code, original, stem, name, session.stable, earlier=compile_id or "unknown")
    text = f"# {_EARLIER} {DOES_NOT_RUN}\n{rendering.text}"
    session.add(
        TransformedCode(
            compile_id=compile_id,
            function=original.co_name,
            qualified_name=qualified_name(original),
            filename=original.co_filename,
            first_line=original.co_firstlineno,
            index=index,
            path=session.directory.write(name, text),
            text=text,
            source=rendering.source,
            verdict=rendering.verdict,
            reason=rendering.reason,
            replaced=False,
            graphs=tuple(f"__compiled_fn_{compiled_fn_number(name)}" for name in names),
            original_code=weakref.ref(original),
            running_code=weakref.ref(code),
            earlier=True,
            runs=False,
        )
    )


def _write_compiled(
    session: Session, function: str, compile_id: Optional[str], found: Recovered, reported: Set[str]
) -> None:
    if function in reported:
        return
    reported.add(function)
    session.add(EarlierFunction(compile_id, function, found.pending))
    for stage, text in _graph_texts(found):
        index = session.directory.take_number(f"{function}.{stage.value}")
        file = write_graph(session, compile_id, function, stage, index, text)
        if file.path is not None:
            text = with_status(file.text, f"{_EARLIER} {DOES_NOT_RUN}")
            session.directory.write(session.directory.name_of(file.path), text)
            session.add(replace(file, text=text))
    for kernel in found.kernels:
        _write_kernel(session, function, compile_id, kernel)


def _graph_texts(found: Recovered) -> Iterator[Tuple[Stage, str]]:
    for stage, module in found.graphs:
        yield stage, readable_text(module)
    for kernel in found.kernels:
        if kernel.post_grad:
            yield Stage.AFTER_POST_GRAD, kernel.post_grad


def _write_kernel(session: Session, function: str, compile_id: Optional[str], kernel: Kernel) -> None:
    source = kernel.source or (_content(kernel.path) if kernel.path else "")
    if not source:
        return
    index = session.directory.take_number(f"{function}.kernel")
    text = text_of_copy(source, f"{_EARLIER} {DOES_NOT_RUN}{_what_runs(kernel.path)}")
    path = session.directory.write(file_names.kernel_file(function, index), text)
    if path is not None:
        session.add(KernelFile(compile_id, function, index, path, kernel.path or "", text, kernel.backward, runs=False))


def _what_runs(path: Optional[str]) -> str:
    if path is None:
        return ""
    cached = path.startswith(
        torch_settings.cache_directory() + os.sep
    )  # a directory that may be another one in every run
    return f" What runs: {os.path.basename(path)} in Inductor's cache" if cached else f" What runs: {path}"


def _content(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
