"""Dynamo's transformed code: decompiled, proved, written to a file, and run from that file."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Callable, Dict, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.base.without_collector import without_collector
from depyf.base.without_warnings import without_warnings
from depyf.decompiler import RESUME_PREFIX, line_resumed_at
from depyf.dynamo.capture.persisted import note_replaced
from depyf.dynamo.capture.records import TransformedCode
from depyf.dynamo.capture.relocate import in_file
from depyf.dynamo.capture.rendering import Rendering, render
from depyf.dynamo.capture.session import Receivers, Session
from depyf.dynamo.entries.decorated import shown_name_now
from depyf.dynamo.entries.hints import count_outputs, resume_code
from depyf.dynamo.entries.limits import limits_in_force, region_now
from depyf.dynamo.hooks import compile_ids, frames
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.store.names import compiled_fn_number, file_stem
from depyf.torch_trace import file_names
from depyf.torch_trace.resume_names import function_name
from depyf.torch_trace.stages import Stage

BytecodeHook = Callable[[CodeType, CodeType], Optional[CodeType]]


def bytecode_hook(receivers: Receivers, before: Callable[[], object]) -> BytecodeHook:
    """Return the hook for ``convert_frame.register_bytecode_hook``: it returns the code object that runs from a file,
    or None to let Dynamo's run.

    ``before()`` is called first. Dynamo calls the hooks at the end of a compilation that succeeds, once, when the
    backend has returned: the graphs are complete then. An exception in a hook would fail the compilation.
    """

    @safely("dumping a transformed code object")
    def hook(original: CodeType, transformed: CodeType) -> Optional[CodeType]:
        sessions = receivers()
        if not sessions:
            return None
        with without_warnings(), without_collector():
            before()
            return capture_transformed(sessions, original, transformed)

    return hook


@dataclass(frozen=True)
class _Dumped:
    """What one session has made of a transformed code object; ``path`` is None when it could not be written."""

    session: Session
    index: int
    path: Optional[str]
    rendering: Rendering


def capture_transformed(sessions: Sequence[Session], original: CodeType, transformed: CodeType) -> Optional[CodeType]:
    """Dump the ``transformed`` code of ``original``; return the code object to run, or None for Dynamo's as it is."""
    running = None
    dumped = [_dump(session, original, transformed) for session in sessions]
    # Each session has a file of its own, and the code can run from only one: the last one here is the innermost. A
    # file that could not be written, or a session without stepping, leaves the choice to the session around it.
    for each in dumped:
        if each.path is not None and each.session.stepping:
            running = in_file(each.rendering.code, each.path)
    if running is not None:
        note_replaced(running, transformed)
    # Records come last: they hold the code that runs, which is the same for all sessions.
    for each in dumped:
        each.session.add(_record(each, original, transformed, running or transformed))
    return running


def _dump(session: Session, original: CodeType, transformed: CodeType) -> _Dumped:
    function = file_stem(original.co_name)
    index = session.directory.take_number(f"transformed code of {function}")
    stem, name = file_names.transformed_stem(index, function), file_names.transformed_file(index, function)
    path = session.directory.file(name)
    outputs = _graph_outputs(session)
    rendering = render(transformed, original, stem, path, session.stable, outputs, runs=session.stepping)
    written = session.directory.write(name, rendering.text)
    if session.log_bytecode and session.stable.hidden is None:  # a code object has all values
        _log_bytecode(session, stem, original, transformed, rendering)
    return _Dumped(session, index, written, rendering)


def _record(dumped: _Dumped, original: CodeType, transformed: CodeType, running: CodeType) -> TransformedCode:
    rendering = dumped.rendering
    numbers = (compiled_fn_number(name) for name in transformed.co_names)
    return TransformedCode(
        compile_id=compile_ids.current_compile_id(),
        function=original.co_name,
        qualified_name=shown_name_now(original),
        filename=original.co_filename,
        first_line=original.co_firstlineno,
        index=dumped.index,
        path=dumped.path,
        text=rendering.text,
        source=rendering.source,
        verdict=rendering.verdict,
        reason=rendering.reason,
        replaced=dumped.path is not None and rendering.proved and dumped.session.stepping,
        graphs=tuple(f"__compiled_fn_{number}" for number in numbers if number is not None),
        original_code=weakref.ref(original),
        running_code=weakref.ref(running),
        resumes=_resumes_called(dumped.session, original, transformed),
        resume_lines=_resume_lines(dumped.session, original, transformed),
        identity=id(original),
        lines=rendering.lines,
        runs=dumped.session.stepping,
        limits=limits_in_force(),
        region=region_now(),
    )


def _resumes_called(
    session: Session, original: CodeType, transformed: CodeType
) -> Dict[str, Tuple[str, str, int, int]]:
    """Return the resume functions that the code calls, by their displayed names.

    Dynamo installs a resume function as a global of the user's module before it calls the bytecode hooks.
    """
    scope = frames.frame_globals(original) or {}
    found: Dict[str, Tuple[str, str, int, int]] = {}
    for name in transformed.co_names:
        code = resume_code(scope.get(name))[0] if name.startswith(RESUME_PREFIX) else None
        if code is not None:
            found[session.stable.text(name)] = (code.co_name, code.co_filename, code.co_firstlineno, id(code))
    return found


def _resume_lines(session: Session, original: CodeType, transformed: CodeType) -> Dict[str, int]:
    """Return the user's lines at which the resume functions of a branch continue, by their displayed names.

    A graph break in the condition of ``if x.sum() > 0:`` makes two resume functions, and both are named after the line
    of the ``if``: only their code says which one is which side. Without a second resume function the line in the name
    is enough.
    """
    scope = frames.frame_globals(original) or {}
    codes = {name: resume_code(scope.get(name))[0] for name in transformed.co_names if name.startswith(RESUME_PREFIX)}
    found: Dict[str, int] = {}
    for name, code in codes.items() if len(codes) > 1 else ():
        # A break in a function that Dynamo inlined makes resume functions of that function, which continue elsewhere.
        if code is not None and function_name(code.co_name) == function_name(original.co_name):
            line = line_resumed_at(code) if code.co_filename == original.co_filename else None
            if line is not None:
                found[session.stable.text(name)] = line
    return found


def _graph_outputs(session: Session) -> Dict[str, int]:
    """Return the number of outputs of the graphs that this compilation captured, by the stable name of their calls."""
    captured = [file for file in session.graph_files(compile_ids.current_compile_id()) if file.stage is Stage.CAPTURED]
    counts = {file.function: count_outputs(file.text) for file in captured}
    return {function: count for function, count in counts.items() if count is not None}


@safely("logging bytecode (log_bytecode=True)")
def _log_bytecode(session: Session, stem: str, original: CodeType, transformed: CodeType, rendering: Rendering) -> None:
    import dill

    logged = {"original_bytecode": original, "transformed_bytecode": transformed}
    if rendering.proved:
        logged["decompiled_and_compiled_back_bytecode"] = rendering.code
    for suffix, code in logged.items():
        session.directory.write(f"{stem}.py.{suffix}", dill.dumps(code))
