"""pdb under ``debug()``: where it stops first, what it steps into, and where the user's breakpoints stop.

- It stops in the user's frame itself, and not in a call of ``breakpoint()`` that depyf would make: ``next`` and ``up``
  then show the user's lines.
- ``step`` passes the frames of PyTorch and depyf that stand between the user's lines and the files of the dump, and
  the frames of the standard library that these frames call.
- A breakpoint in a function that was compiled never stops, as the files of the dump run in its place. The breakpoint
  is set there, too.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import os
import pdb
import sys
from types import FrameType
from typing import Callable, Dict, Iterator, List, Optional, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.source_lines import source_line
from depyf.dynamo.hooks.debuggers import monitored_by_pdb
from depyf.dynamo.hooks.patching import Undo, replace_attribute
from depyf.dynamo.hooks.safely import safely
from depyf.report.model.manifest import ManifestError
from depyf.report.model.run import Artifact, Run
from depyf.report.read.reading import NothingToRead, load

_OWN_MODULES = ("depyf", "depyf.*", "_weakrefset")  # a finalizer of depyf's runs at the line that follows debug()
_NOT_STEPPED_INTO = (
    *_OWN_MODULES,
    # All of PyTorch but the modules that Inductor writes: torch._inductor.runtime.compile_tasks.*
    *("torch", "torch.[!_]*", "torch._[!i]*", "torch._inductor.[!r]*", "torch._inductor.runtime.[!c]*"),
)
"""The modules whose frames ``step`` and ``next`` pass, as ``bdb`` matches them. A breakpoint in them stops all the
same."""

_STANDARD_LIBRARY = (os.path.join(os.path.normcase(os.path.dirname(os.__file__)), ""), "<frozen ")
_PACKAGES = ("site-packages", "dist-packages")


def is_pdb(*, default_hook: bool) -> bool:
    """Return whether ``breakpoint()`` is the standard library's pdb, with Python's own hook if ``default_hook``."""
    chosen = os.environ.get("PYTHONBREAKPOINT", "") in ("", "pdb.set_trace")
    hook = default_hook or sys.breakpointhook is sys.__breakpointhook__
    return chosen and hook and pdb.set_trace.__module__ == "pdb" and not monitored_by_pdb()


_NO_INPUT = (
    "depyf.debug() pauses in a debugger that reads commands, and this notebook has no input "
    "(nbconvert and papermill run it without). Run the cell in an interactive notebook, switch its "
    "visual debugger on, or set PYTHONBREAKPOINT=0 to run through"
)


@contextlib.contextmanager
def asking_for_commands() -> Iterator[None]:
    """Raise ``RuntimeError`` with what to do where a notebook without input is asked for a command."""
    try:
        yield
    except BaseException as error:  # it comes through a trace function, as what comes from outside does
        if type(error).__name__ == "StdinNotImplementedError":
            raise RuntimeError(_NO_INPUT) from error
        raise


def stop_in_pdb(frame: FrameType, directory: Optional[str]) -> List[Undo]:
    """Let pdb stop at the next instruction of ``frame``: it is still in its ``with`` line, and no frame of depyf's is
    left for ``next`` and ``up`` to show. ``directory`` is the dump. Return what is to be undone at the end."""
    tracer = getattr(sys.gettrace(), "__self__", None)
    debugger = tracer if isinstance(tracer, pdb.Pdb) else pdb.Pdb()
    before = debugger.skip

    def skip_as_before() -> None:
        # The rest of leaving debug() runs after this, and the user may step into the next debug(). So this debugger
        # passes depyf's frames as long as it lives.
        debugger.skip = {*(before or ()), *_OWN_MODULES}

    debugger.skip = {*(before or ()), *_NOT_STEPPED_INTO}
    if not isinstance(debugger.stop_here, _StopHere):
        debugger.stop_here = _StopHere(debugger)  # type: ignore[method-assign]
    undos: List[Undo] = [skip_as_before]
    if directory is not None:
        undos.append(replace_attribute(debugger, "set_break", _also_where_it_runs(debugger, directory)))

    def stop(stopped: FrameType, event: str, arg: object) -> object:
        # ``set_trace`` makes pdb trace from the next event of the frame on. The program is to stop at this event, which
        # is handed to pdb as the event of a line.
        stopped.f_trace_opcodes = False
        debugger.set_trace(stopped)
        with asking_for_commands():
            return debugger.trace_dispatch(stopped, "line", None)

    # The next line may be in the compiled function: an event for each instruction comes before it, still on this line.
    frame.f_trace = stop
    frame.f_trace_opcodes = True
    # A frame's own function is called only while there is a global one, which traces no frame that is entered.
    sys.settrace(lambda entered, event, arg: None)
    return undos


class _StopHere:
    """``Bdb.stop_here`` of one debugger. It passes each frame that depyf calls, and each frame of the standard library
    (``contextlib``, ``importlib``) that a passed module calls. It steps into a frame of the standard library that
    the user's code calls."""

    def __init__(self, debugger: pdb.Pdb) -> None:
        self._debugger = debugger
        self._original: Callable[[FrameType], bool] = debugger.stop_here

    def __call__(self, frame: FrameType) -> bool:
        return self._original(frame) and not self._is_for_others(frame)

    def _is_for_others(self, frame: FrameType) -> bool:
        caller: Optional[FrameType] = frame.f_back
        path, name = frame.f_code.co_filename, _module_of(frame)
        # PyTorch's frames are passed here only if depyf has called them: whether step goes there is said by ``skip``.
        while caller is not None and _may_be_for_others(path, name):
            path, name = caller.f_code.co_filename, _module_of(caller)
            if name.partition(".")[0] == "depyf" or self._debugger.is_skipped_module(name):
                return True
            caller = caller.f_back
        return False


def _module_of(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


@functools.lru_cache(maxsize=None)
def _may_be_for_others(path: str, name: str) -> bool:
    """Return whether a frame is of the standard library, or of a module that is passed: the frame that has called it
    says for whom it runs."""
    of_library = os.path.normcase(path).startswith(_STANDARD_LIBRARY) and not any(each in path for each in _PACKAGES)
    return of_library or any(fnmatch.fnmatchcase(name, pattern) for pattern in _NOT_STEPPED_INTO)


def _also_where_it_runs(debugger: pdb.Pdb, directory: str) -> Callable[..., Optional[str]]:
    set_break: Callable[..., Optional[str]] = debugger.set_break

    @functools.wraps(set_break)
    def set_both(filename: str, lineno: int, *options: object, **named: object) -> Optional[str]:
        error = set_break(filename, lineno, *options, **named)
        if not error:
            for text in _set_in_the_dump(directory, set_break, (filename, lineno), bool(options and options[0])) or ():
                debugger.message(f"depyf: {text}")
        return error

    return set_both


@safely("looking for the lines of the dump that a breakpoint belongs to")
def _set_in_the_dump(
    directory: str, set_break: Callable[..., Optional[str]], place: Tuple[str, int], temporary: object
) -> List[str]:
    """Set a breakpoint in each place of the dump where ``place`` runs. Return what to say to the user."""
    where = f"{os.path.basename(place[0])}:{place[1]}"
    told = []
    for function, runs_at in _runs_at(directory, place):
        failed = [each for each in runs_at if set_break(*each, temporary)]
        places = ", ".join(f"{path}:{line}" for path, line in runs_at if (path, line) not in failed)
        if places:
            told.append(f"{where} is compiled, in {function}. It runs at {places}; a breakpoint is set there, too.")
        else:
            told.append(f"{where} is in {function}, which is compiled, and no line of the dump's files runs it.")
    return told


def _runs_at(directory: str, place: Tuple[str, int]) -> List[Tuple[str, List[Tuple[str, int]]]]:
    """Return the compiled functions that ``place`` is in, each with the lines of the dump that run in its place."""
    try:
        runs = load([directory])
    except synchronous(NothingToRead, ManifestError, OSError):  # the dump was removed, say
        return []
    found = []
    for loaded in runs:
        for name, runs_at in _functions_at(loaded.run, place):
            paths = [(os.path.join(loaded.directory or directory, path), line) for path, line in runs_at]
            found.append((name, [(path, _statement(path, line)) for path, line in paths]))
    return found


def _functions_at(run: Run, place: Tuple[str, int]) -> Iterator[Tuple[str, List[Tuple[str, int]]]]:
    """Yield the compiled functions of a run that ``place`` is in, with places in files relative to the dump."""
    compiled: Dict[int, Set[str]] = {}
    for each in run.compilations:
        if each.status == "compiled" and each.function is not None:
            compiled.setdefault(run.root(each.function), set()).add(each.compile_id)
    for index, ids in compiled.items():
        function = run.functions[index]
        inside = function.first_line <= place[1] <= function.last_line
        if inside and _is_file(run.sources[function.source].path, place[0]):
            files = [each for each in run.artifacts if each.compile_id in ids and each.runs and each.path]
            # A breakpoint at a ``def`` stops when the function is called.
            begins = [(each.path or "", 2) for each in files if each.kind == "transformed"]
            at_definition = place[1] == function.first_line
            yield function.qualified_name, begins if at_definition else _linked_lines(run, files, place)


def _linked_lines(run: Run, files: List[Artifact], place: Tuple[str, int]) -> List[Tuple[str, int]]:
    graphs: List[Tuple[str, int]] = []
    transformed: List[Tuple[str, int]] = []
    for each in files:
        lines = [
            link.last if each.kind == "kernels" else link.first  # a kernel's text comes first, and its call last
            for link in each.links
            if any(line == place[1] and _is_file(run.sources[at].path, place[0]) for at, line in link.places)
        ]
        if lines:
            line = lines[-1] if each.kind == "kernels" else lines[0]
            (transformed if each.kind == "transformed" else graphs).append((each.path or "", line))
    # The transformed code calls the graph: the breakpoint in the graph alone is what the user means.
    return graphs or transformed


def _statement(path: str, line: int) -> int:
    """Return the number of the first line from ``line`` on that is no comment: links begin at PyTorch's comments."""
    while source_line(path, line).startswith("#"):
        line += 1
    return line


def _is_file(path: str, other: str) -> bool:
    return os.path.basename(path) == os.path.basename(other) and os.path.realpath(path) == os.path.realpath(other)
