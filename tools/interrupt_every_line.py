"""Raise an exception at every line of depyf that entering, leaving and each hook of a session execute, one by one.

A small program is run under ``sys.settrace`` once for each line and type of exception. The trace function raises when
the line is executed for the first time, as a signal handler may. Afterwards the program has to have its exception, or
what PyTorch makes of it; torch has to be as it was before, no session may be open, the files of the dump have to be
whole, and the next session has to work.

    python tools/interrupt_every_line.py                # everything: takes an hour
    python tools/interrupt_every_line.py --every 25     # each 25th line
    python tools/interrupt_every_line.py --where enter

Prints a table, then what was left behind, and exits with 1 where that is anything.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type

import torch

import depyf
from depyf.dynamo.dump.active_sessions import capture
from depyf.dynamo.hooks import attribution, frame_evaluation, locks, patching, run_callback, torch_names

PACKAGE = os.path.dirname(os.path.abspath(depyf.__file__)) + os.sep
PHASES = ("enter", "hooks", "leave")


NEXT_SESSIONS = 10
"""After so many interruptions a whole session is run and looked at. Each run is the next session of the one before."""

_NUMBER = re.compile(r"(?<=__compiled_fn_)\d+|(?<=_at_)\d+_\d+")


class Interruption(Exception):
    """What the program's signal handler raises."""


TYPES: Tuple[Type[BaseException], ...] = (Interruption, KeyboardInterrupt)

BEFORE_ANYTHING = ("prepare.py", "__exit__")
"""The first line of this function: nothing of depyf's has run that could see to the end."""


class Line(NamedTuple):
    """A line that is executed: of which file, in which function, when."""

    phase: str
    file: str
    number: int
    function: str

    def __str__(self) -> str:
        return f"{self.phase}: {os.path.relpath(self.file, PACKAGE)}:{self.number} ({self.function})"


def user_function(x: Any) -> Any:
    y = x.sin() + 1
    torch._dynamo.graph_break()
    return y * 2


def program(directory: str, enter_phase: Callable[[str], None]) -> Any:
    """Compile a function inside of a session."""
    torch._dynamo.reset()
    compiled = torch.compile(user_function, backend="eager")
    x = torch.ones(3)
    enter_phase("enter")
    with depyf.prepare_debug(directory):
        enter_phase("hooks")
        result = compiled(x)
        enter_phase("leave")
    enter_phase("")
    return result.tolist()


class Tracer:
    """Notes each line of depyf's when it is first executed in a phase, and raises ``error`` at line ``at``."""

    def __init__(self, at: Optional[Line] = None, error: Optional[BaseException] = None) -> None:
        self.lines: Dict[Line, None] = {}
        self.phase = ""
        self.raised = False
        self._at = at
        self._error = error
        self._seen: set[Tuple[str, CodeType, int]] = set()

    def enter_phase(self, phase: str) -> None:
        self.phase = phase

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if not self.phase or not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        key = (self.phase, frame.f_code, frame.f_lineno)
        if event == "line" and self.phase and key not in self._seen:
            self._seen.add(key)
            line = Line(self.phase, frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
            self.lines[line] = None
            if line == self._at and self._error is not None:
                self.raised = True
                self.phase = ""
                raise self._error
        return self._line


@contextlib.contextmanager
def tracing(tracer: Tracer) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield
    finally:
        sys.settrace(before)


def lines_of_program(directory: str) -> List[Line]:
    """Every line that the program makes depyf execute, in order."""
    tracer = Tracer()
    with tracing(tracer):
        program(directory, tracer.enter_phase)
    return list(tracer.lines)


def hooked_places(directory: str) -> List[Tuple[Any, str]]:
    """Where a session puts functions of depyf's: found by looking for them everywhere in torch."""
    places: List[Tuple[Any, str]] = []
    with depyf.prepare_debug(directory):
        for name, module in list(sys.modules.items()):
            if not name.startswith("torch") or not hasattr(module, "__dict__"):
                continue
            for key, value in list(vars(module).items()):
                if _is_ours(value):
                    places.append((module, key))
                elif isinstance(value, type) and value.__module__ == name:
                    places += [(value, each) for each, held in list(vars(value).items()) if _is_ours(held)]
    return places


def _is_ours(value: Any) -> bool:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    code = value.__code__ if isinstance(value, FunctionType) else None
    return code is not None and code.co_filename.startswith(PACKAGE)


class State:
    """What a session changes in the process, to be compared before and after."""

    def __init__(self, places: Sequence[Tuple[Any, str]]) -> None:
        self._places = places

    def read(self) -> Dict[str, Any]:
        found: Dict[str, Any] = {f"{owner.__name__}.{name}": vars(owner).get(name) for owner, name in self._places}
        for name in sorted(logging.root.manager.loggerDict):
            if name.startswith("torch"):
                logger = logging.getLogger(name)
                found[f"logger {name}"] = (logger.level, list(logger.handlers), list(logger.filters))
        hooks = torch_names.find("torch._dynamo.convert_frame", "_bytecode_hooks") or {}
        callback = frame_evaluation.set_eval_frame(None)
        frame_evaluation.set_eval_frame(callback)
        found.update(
            {
                "bytecode hooks": list(hooks.values()),
                "callback of runs": run_callback._read() if frame_evaluation.tells_runs() else None,
                "runs": (run_callback._callback.notes, list(run_callback._callback.installed)),
                "Dynamo's callback": callback,
                "stance": frame_evaluation.stance(),
                "sessions": capture._sessions,
                "undo": list(capture._undo),
                "undo of settings": list(capture._caches._switch_on),
                "covered": [*patching._covered, *patching._covered_everywhere],
                "collector": getattr(patching._here, "undo", None),
                "attribution": {key: value for key, value in vars(attribution._here).items() if value},
                "locks": _held_locks(),
                "import hooks": list(sys.meta_path),
                "excepthooks": (sys.excepthook, threading.excepthook),
                "breakpointhook": sys.breakpointhook,
                "recursion limit": sys.getrecursionlimit(),
                "collection": gc.isenabled(),
                "warnings": list(__import__("warnings").filters),
                "descriptors": _descriptors(),
            }
        )
        return found


def _held_locks() -> int:
    """How many of depyf's locks another thread can't have."""
    held: List[Any] = []

    def attempt() -> None:
        for lock in list(locks._locks):
            if lock._lock.acquire(blocking=False):
                lock._lock.release()
            else:
                held.append(lock)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return len(held)


def _descriptors() -> Any:
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):
        return None
    paths = [os.path.realpath(f"{folder}/{each}") for each in os.listdir(folder)]
    return Counter(path for path in paths if not path.startswith("/proc/"))  # the listing itself


def faults_in(directory: str) -> List[str]:
    """Files of a dump that are not whole."""
    found = []
    for path in sorted(Path(directory).rglob("*")) if os.path.isdir(directory) else []:
        if path.name.endswith(".writing"):
            found.append(f"{path.name} is left")
        elif path.suffix == ".py":
            found += [] if _is_python(path.read_text()) else [f"{path.name} is no Python"]
        elif path.suffix == ".json":
            found += [] if _is_json(path.read_text()) else [f"{path.name} is no JSON"]
        elif path.suffix == ".html" and not path.read_text().rstrip().endswith("</html>"):
            found.append(f"{path.name} is not whole")
    return found


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_or_comes_from(error: Optional[BaseException], wanted: BaseException) -> bool:
    seen: List[BaseException] = []
    while error is not None and error not in seen:
        if error is wanted:
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


class Interrupter:
    """Runs the program once for each line, and says what each interruption has left behind."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._count = self._interruptions = 0
        self.expected = program(self._new_directory(), lambda phase: None)
        places = hooked_places(self._new_directory())
        self.lines = lines_of_program(self._new_directory())
        self.files = self._session_files()
        self._state = State(places)

    def _new_directory(self) -> str:
        self._count += 1
        return os.path.join(self._folder, str(self._count))

    def _session_files(self) -> List[str]:
        directory = self._new_directory()
        assert program(directory, lambda phase: None) == self.expected
        files = sorted(_NUMBER.sub("", each) for each in os.listdir(directory) if not each.startswith("."))
        shutil.rmtree(directory)
        return files

    def left_behind(self, line: Line, kind: Type[BaseException]) -> List[str]:
        """Interrupt the program at ``line`` and return what is wrong afterwards."""
        directory, wanted = self._new_directory(), kind("from outside")
        tracer = Tracer(line, wanted)
        before = self._state.read()
        got: Optional[BaseException] = None
        with tracing(tracer):
            try:
                program(directory, tracer.enter_phase)
            except BaseException as error:
                got = error
        wrong = []
        if not tracer.raised:
            return ["the line was not executed"]
        if not _is_or_comes_from(got, wanted):
            wrong.append(f"the program did not get it, but {got!r}")
        got = None
        wanted.__traceback__ = wanted.__context__ = wanted.__cause__ = None
        wrong += self._changed(before)
        wrong += faults_in(directory)
        self._mend()
        shutil.rmtree(directory, ignore_errors=True)
        self._interruptions += 1
        if wrong or not self._interruptions % NEXT_SESSIONS:
            wrong += self.next_session()
        return wrong

    def next_session(self) -> List[str]:
        """Run the program undisturbed and return what is wrong with that."""
        try:
            files = self._session_files()
        except Exception as error:
            return [f"the next session fails: {error!r}"]
        return [] if files == self.files else [f"the next session writes {sorted(set(files) ^ set(self.files))}"]

    def _changed(self, before: Dict[str, Any]) -> List[str]:
        """What is not as it was ``before``."""
        torch._dynamo.reset()
        for collected in (False, True):
            if collected:
                gc.collect()
            after = self._state.read()
            changed = [key for key in after if before.get(key) != after[key]]
            if before["descriptors"] is not None:
                changed.remove("descriptors") if "descriptors" in changed else None
                opened = after["descriptors"] - before["descriptors"]
                # The place among the writers of a directory is kept as long as the process lives.
                opened = [each for each in opened if f"{os.sep}.depyf_writers{os.sep}" not in each]
            if not changed and not opened:
                return []
        return [
            *(f"{key}: {before.get(key)!r} became {after[key]!r}" for key in changed),
            *(f"open: {each}" for each in opened),
        ]

    def _mend(self) -> None:
        """End what is still open, so that the next line is judged by itself."""
        for session in capture._sessions:
            capture.drop(session)


def chosen(lines: Sequence[Line], where: Sequence[str], every: int, first: int = 0) -> List[Line]:
    """Each ``every``-th line of the phases in ``where``, without those before which nothing can be done."""
    found = [line for line in lines if line.phase in where]
    exits = [line for line in found if (os.path.basename(line.file), line.function) == BEFORE_ANYTHING]
    return [line for line in found if line not in exits[:1]][first::every]


def main() -> int:
    """Interrupt the program at the lines that the arguments choose."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--where", action="append", choices=PHASES, help="only in this phase (may be given repeatedly)")
    parser.add_argument("--every", type=int, default=1, help="each so many-th line")
    parser.add_argument("--first", type=int, default=0, help="the number of the first line")
    options = parser.parse_args()
    logging.getLogger("depyf").setLevel(logging.CRITICAL)
    table: Dict[str, List[int]] = {}
    wrong: List[str] = []
    with tempfile.TemporaryDirectory() as folder:
        interrupter = Interrupter(folder)
        for phase in options.where or PHASES:
            row = table.setdefault(phase, [0, 0, 0])
            for line in chosen(interrupter.lines, [phase], options.every, options.first):
                row[0] += 1
                for kind in TYPES:
                    left = interrupter.left_behind(line, kind)
                    row[1] += 1
                    row[2] += bool(left)
                    for each in left:
                        wrong.append(f"{line}, {kind.__name__}: {each}")
                        print(wrong[-1][:400], flush=True)
    print(f"{'where':<10}{'lines':>8}{'exceptions':>12}{'left behind':>13}")
    for phase, (lines, exceptions, left_behind) in table.items():
        print(f"{phase:<10}{lines:>8}{exceptions:>12}{left_behind:>13}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
