"""Run a program as ``__main__``, as the interpreter does: its view of itself, its exit status, its tracebacks.

Known differences: ``sys.orig_argv`` names depyf, frames of depyf are below the frames of the program, and modules of
depyf have been imported. On 3.8, ``__file__`` is absolute, as it is since 3.9.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import importlib.util
import os
import pkgutil
import shutil
import sys
import traceback
import zipfile
from types import CodeType, ModuleType, TracebackType
from typing import Any, List, Optional, Sequence

from depyf.base.messages import cut, describe, error_line, write
from depyf.base.quick_dataclass import dataclass
from depyf.torch_trace.user_code import innermost_line

_OURS = os.path.dirname(os.path.abspath(__file__))


def own_command(module: str) -> List[str]:
    """Return the command that calls ``main`` of one of depyf's modules with the words that follow, and exits with the
    status. Modules beside the user's program do not stand in for others, as they would after ``python -m depyf``."""
    parent = os.path.dirname(os.path.dirname(_OURS))
    first = f"if not sys.path[0]: sys.path[0] = {parent!r}"
    return [sys.executable, "-c", f"import sys\n{first}\nfrom {module} import main\nsys.exit(main(sys.argv[1:]))"]


class NoProgramError(Exception):
    """Raised when there is nothing to run; names what was searched for."""


@dataclass(frozen=True)
class UserProgram:
    """The program to run: ``name`` is a script (or a folder or archive with a ``__main__``), or a module."""

    name: str
    arguments: Sequence[str]
    is_module: bool = False

    @property
    def short_name(self) -> str:
        """A name for a directory: the script without its suffix, or the module."""
        name = self.name if self.is_module else os.path.splitext(os.path.basename(os.path.abspath(self.name)))[0]
        return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name) or "program"


@dataclass(frozen=True)
class ProgramEnd:
    """How the program ended: the exit status, and the interrupt that ended it, which the caller raises at last.
    ``words`` say with which exception or exit it ended, and in which line; empty if its last line was run."""

    status: int
    interrupt: Optional[KeyboardInterrupt] = None
    words: str = ""


def run(program: UserProgram) -> ProgramEnd:
    """Run it to its end. An exception is printed as the interpreter prints it, and so is the message of an exit. Raises
    ``NoProgramError`` before any code of it has run."""
    # A new module with the names that the interpreter gives ``__main__``.
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    main.__dict__.update(__annotations__={}, __doc__=None)
    find = _prepare_module if program.is_module else _prepare_script
    prepared = find(program, main)
    _kept.append(sys.modules["__main__"])
    sys.modules["__main__"] = main  # and it stays there: exit handlers of the program use it
    return _ends(prepared, main)


_kept: List[ModuleType] = []
"""The previous ``__main__``: a module without references is cleared."""


@dataclass(frozen=True)
class _Prepared:
    """The ``code`` to run, unless there was an ``error`` that the program would have ended with."""

    code: Optional[CodeType]
    error: Optional[BaseException] = None


def _prepare_script(program: UserProgram, main: ModuleType) -> _Prepared:
    path = _script(program.name)
    # ``python folder`` and ``python app.zip`` run the ``__main__`` module inside.
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        return _prepare_folder(path, program, main)
    path = os.path.join(os.getcwd(), path)  # as the interpreter does: without resolving it
    sys.argv = [program.name if os.path.exists(program.name) else path, *program.arguments]
    _replace_first_path(os.path.dirname(os.path.realpath(path)))
    loader: object
    if path.endswith(".pyc"):
        loader = importlib.machinery.SourcelessFileLoader("__main__", path)
    else:
        loader = importlib.machinery.SourceFileLoader("__main__", path)
    main.__dict__.update(__file__=path, __loader__=loader, __package__=None, __spec__=None, __cached__=None)
    try:
        if path.endswith(".pyc"):
            return _Prepared(loader.get_code("__main__"))
        return _Prepared(compile(loader.get_data(path), path, "exec", dont_inherit=True))  # a script leaves no .pyc
    except OSError as error:
        raise NoProgramError(f"{path}: {error.strerror or error}") from error
    except (SyntaxError, ValueError, ImportError) as error:
        return _Prepared(None, error)


def _script(name: str) -> str:
    """Return the path of a script; a name that is not a file may be a command on PATH that is written in Python."""
    if os.path.exists(name):
        return name
    command = None if os.path.dirname(name) else shutil.which(name)
    if command is None:
        is_path = os.path.dirname(name) or name.endswith(".py")
        other = "" if is_path else f", and no such command on PATH (a module: -m {name})"
        raise NoProgramError(f"{name}: there is no such script{other}")
    try:
        with open(command, "rb") as file:
            first = file.readline()
    except OSError as error:
        raise NoProgramError(f"{command}: {error.strerror or error}") from error
    if not (first.startswith(b"#!") and b"python" in first):
        raise NoProgramError(f"{command}: this command is not written in Python")
    return command


def _prepare_folder(path: str, program: UserProgram, main: ModuleType) -> _Prepared:
    path = os.path.abspath(path)
    importer = pkgutil.get_importer(path)
    spec = None if importer is None else importer.find_spec("__main__")
    if spec is None or spec.loader is None:
        raise NoProgramError(f"{program.name}: there is no __main__ module in it")
    sys.argv = [program.name, *program.arguments]
    _replace_first_path(path)
    return _from_spec(spec, main, package="")


def _prepare_module(program: UserProgram, main: ModuleType) -> _Prepared:
    _replace_first_path(os.getcwd())
    sys.argv = ["-m", *program.arguments]
    spec = _module_spec(program.name)
    prepared = _from_spec(spec, main, package=spec.parent or "")
    sys.argv[0] = spec.origin or program.name
    return prepared


def _module_spec(name: str) -> importlib.machinery.ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
        # ``-m package`` runs ``package.__main__``.
        if spec is not None and spec.submodule_search_locations is not None and not name.endswith(".__main__"):
            inner = importlib.util.find_spec(f"{name}.__main__")
            if inner is None:
                raise NoProgramError(f"no module named {name}.__main__: {name} is a package that can't be run directly")
            spec = inner
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise NoProgramError(f"no module named {name} can be found ({type(error).__name__}: {error})") from error
    if spec is None:
        raise NoProgramError(f"no module named {name}")
    if not hasattr(spec.loader, "get_code"):
        raise NoProgramError(f"{name}: only modules written in Python can be run")
    return spec


def _from_spec(spec: importlib.machinery.ModuleSpec, main: ModuleType, package: str) -> _Prepared:
    main.__dict__.update(
        __file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader, __package__=package, __spec__=spec
    )
    loader: Any = spec.loader
    try:
        code = loader.get_code(spec.name)
    except (SyntaxError, ValueError, ImportError) as error:
        return _Prepared(None, error)
    if code is None:
        raise NoProgramError(f"{spec.name}: only modules written in Python can be run")
    return _Prepared(code)


def _replace_first_path(path: str) -> None:
    """Replace the entry of ``sys.path`` that the interpreter made for depyf; ``python -P`` makes none."""
    if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated) and sys.path:
        sys.path[0] = path


def _ends(prepared: _Prepared, main: ModuleType) -> ProgramEnd:
    """Run the code, and handle its end as the interpreter does."""
    error = prepared.error
    if prepared.code is not None:
        error = _execute(prepared.code, main)
    if error is None:
        return ProgramEnd(0)
    error = error.with_traceback(_without_our_frames(error.__traceback__))
    words = _end_in_words(error)
    if isinstance(error, SystemExit):
        return ProgramEnd(_status(error.code), words=words)
    status = _print(error)
    return ProgramEnd(status, error if status == 1 and isinstance(error, KeyboardInterrupt) else None, words)


def _end_in_words(error: BaseException) -> str:
    """Return ``ModuleNotFoundError: No module named 'a' (train.py:2)``; the line is the innermost of the user's."""
    frames = traceback.extract_tb(error.__traceback__)
    place = innermost_line([(each.filename, each.lineno or 0, each.name) for each in frames])
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        place = error.filename, error.lineno
    where = f" ({os.path.basename(place[0])}:{place[1]})" if place else ""
    if isinstance(error, SystemExit):
        code = "" if error.code is None else cut(repr(error.code), _LONGEST)
        return f"sys.exit({code}){where}"
    text = f"SyntaxError: {error.msg}" if isinstance(error, SyntaxError) else describe(error).splitlines()[0]
    return f"{cut(text, _LONGEST)}{where}"


_LONGEST = 200


def _execute(code: CodeType, main: ModuleType) -> Optional[BaseException]:
    try:
        exec(code, main.__dict__)
    except BaseException as error:
        return error
    return None


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    error_line(code)
    return 1


def _without_our_frames(found: Optional[TracebackType]) -> Optional[TracebackType]:
    """Return the traceback from the first frame of the program on; ``None`` if it never started (a syntax error)."""
    while found is not None and _is_ours(found):
        found = found.tb_next
    return found


def _is_ours(found: TracebackType) -> bool:
    path = found.tb_frame.f_code.co_filename
    return path.startswith((_OURS, "<frozen importlib"))


def _print(error: BaseException) -> int:
    """Print it by the program's own hook, or Python's; return the exit status."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as ending:  # the hook may select the exit status
        return _status(ending.code)
    except BaseException as second:
        lines = traceback.format_exception(type(second), second, _without_our_frames(second.__traceback__))
        write(sys.stderr, "".join(["Error in sys.excepthook:\n", *lines, "\nOriginal exception was:\n"]))
        sys.__excepthook__(type(error), error, error.__traceback__)
    return 1
