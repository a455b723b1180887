"""Raise an exception at every line of depyf that its context managers execute, one by one.

A small program is run under ``sys.settrace`` once for each line and type of exception. The trace function raises when
the line is executed for the first time, as a signal handler may. Afterwards the program has to have its exception, or
what PyTorch makes of it; torch has to be as it was before, no session may be open, the files of the dump have to be
whole, and the next session has to work.

    python tools/check/interrupt_every_line.py                       # everything: takes hours of one core
    python tools/check/interrupt_every_line.py --every 25            # each 25th line
    python tools/check/interrupt_every_line.py --where enter         # entering a session; also: hooks, leave
    python tools/check/interrupt_every_line.py --where trace-enter   # other contexts, and compare: see --help
    python tools/check/interrupt_every_line.py --part 1/2            # the first of two halves: one process for each

Prints a table, then what was left behind, and exits with 1 where that is anything. Progress goes to the error stream.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib
import io
import json
import logging
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type

import torch

import depyf
from depyf.base import locks, messages
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.dump.pausing import compiles_nothing
from depyf.dynamo.hooks import attribution, frame_evaluation, patching, run_callback, torch_names
from depyf.dynamo.hooks.backward_methods import all_backward_classes
from depyf.dynamo.observe.observation import observation
from depyf.dynamo.questions.trace.question import _runs

PACKAGE = os.path.dirname(os.path.abspath(depyf.__file__)) + os.sep
EAGER = hasattr(
    torch_names.find("torch.utils._python_dispatch", "TorchDispatchMode"), "supports_higher_order_operators"
)
"""Whether ``find_nonfinite`` can observe operations outside of compiled graphs."""

CATCHES_ALL = "torch._dynamo.metrics_context"
"""PyTorch logs the metrics of a compilation inside of ``except Exception``: an exception there is lost without depyf,
too."""

NEXT_SESSIONS = 10
"""After so many interruptions a whole session is run and checked. Each run is the next session of the one before."""

_NUMBER = re.compile(r"(?<=__compiled_fn_)\d+|(?<=_at_)\d+_\d+")


class Interruption(Exception):
    """Raised by the program's signal handler."""


TYPES: Tuple[Type[BaseException], ...] = (Interruption, KeyboardInterrupt)

BEFORE_ANYTHING = ("hooked_context.py", "__exit__")
"""The first line of this function: no code of depyf has run yet that could clean up."""


class Line(NamedTuple):
    """A line that is executed: its file, function and phase."""

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


Program = Callable[[str, Callable[[str], None]], Any]
"""Takes a directory, and a function to call with the name of each phase that starts (empty: between phases)."""


def session_program(directory: str, enter_phase: Callable[[str], None]) -> Any:
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


def context_program(name: str, make: Callable[[str], Any]) -> Program:
    """Return a program that enters and leaves a context around a function that was compiled before, with a backward."""

    def program(directory: str, enter_phase: Callable[[str], None]) -> Any:
        torch._dynamo.reset()
        gc.collect()  # the backwards of earlier programs, which contexts search for
        compiled = torch.compile(user_function, backend="aot_eager")
        x = torch.ones(3, requires_grad=True)
        compiled(x).sum().backward()
        context = make(directory)
        with contextlib.redirect_stdout(io.StringIO()):
            enter_phase(f"{name}-enter")
            with context:
                enter_phase("")
                result = compiled(x)
                result.sum().backward()
                enter_phase(f"{name}-leave")
            enter_phase("")
        return result.tolist()

    return program


def compare_program(directory: str, enter_phase: Callable[[str], None]) -> Any:
    """Compare a compiled function with itself in eager mode."""
    torch._dynamo.reset()
    x = torch.ones(3, requires_grad=True)
    enter_phase("compare")
    compared = depyf.compare(user_function, x, backend="aot_eager", directory=directory)
    enter_phase("")
    return [stage.right for stage in compared.stages]


def why_program(directory: str, enter_phase: Callable[[str], None]) -> Any:
    """Ask why a call of a function whose compilation has failed is not answered from the cache."""
    torch._dynamo.reset()
    x = torch.ones(3)
    compiled = torch.compile(lambda x: user_function(x), backend="eager", fullgraph=True)
    with contextlib.suppress(Exception):  # at the graph break
        compiled(x)
    enter_phase("why")
    answer = depyf.why(compiled, x)
    enter_phase("")
    return str(answer)


def message_program(directory: str, enter_phase: Callable[[str], None]) -> Any:
    """Write a message into a pipe that nobody reads, in a program whose SIGPIPE has the action of the system."""
    reading, writing = os.pipe()
    os.close(reading)
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        enter_phase("message")
        written = messages.write(_Unbuffered(writing), "lost")
        enter_phase("")
    finally:
        signal.signal(signal.SIGPIPE, before)
        os.close(writing)
    return written


class _Unbuffered:
    """A stream without a buffer that is written when it is closed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def flush(self) -> None:
        pass


CONTEXTS: Dict[str, Callable[[str], Any]] = {
    "watch": lambda directory: depyf.watch(stream=io.StringIO()),
    "trace": lambda directory: depyf.trace(),
    "debug": lambda directory: depyf.debug(),
}
OBSERVING: Dict[str, Callable[[str], Any]] = {
    "find_nonfinite": lambda directory: depyf.find_nonfinite(directory, eager=EAGER, stream=io.StringIO()),
    "probe": lambda directory: depyf.probe("y", stream=io.StringIO()),
    "shadow": lambda directory: depyf.shadow(1, stream=io.StringIO()),
}
if frame_evaluation.has_stances():  # an older PyTorch can't be observed
    CONTEXTS.update(OBSERVING)

PROGRAMS: Dict[Tuple[str, ...], Program] = {
    ("enter", "hooks", "leave"): session_program,
    **{(f"{name}-enter", f"{name}-leave"): context_program(name, make) for name, make in CONTEXTS.items()},
    **({("compare",): compare_program, ("why",): why_program} if frame_evaluation.has_stances() else {}),
    **({("message",): message_program} if hasattr(signal, "pthread_sigmask") else {}),
}
"""Each program with its phases."""

PHASES = tuple(phase for phases in PROGRAMS for phase in phases)


class Tracer:
    """Records each line of depyf when it is first executed in a phase, and raises ``error`` at line ``at``. It traces
    in the phase of ``at`` only, and in all phases without it."""

    def __init__(self, at: Optional[Line] = None, error: Optional[BaseException] = None) -> None:
        self.lines: Dict[Line, None] = {}
        self.phase = ""
        self.raised = False
        self.torch_catches_it = False
        self._at = at
        self._error = error
        self._seen: set[Tuple[str, CodeType, int]] = set()

    def enter_phase(self, phase: str) -> None:
        self.phase = phase if self._at is None or self._at.phase == phase else ""
        sys.settrace(self if self.phase else None)

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
                self.torch_catches_it = isinstance(self._error, Exception) and _is_called_by(frame, CATCHES_ALL)
                self.phase = ""
                raise self._error
        return self._line


def _keep_dynamo_out_of_tracers() -> None:
    """Or it skips their frames while lines are recorded, and that is noted by lines that run then only."""
    skip = getattr(importlib.import_module("torch._dynamo.eval_frame"), "skip_code", None)
    for method in (Tracer.__call__, Tracer._line) if skip is not None else ():
        skip(method.__code__)


def _is_called_by(frame: Optional[FrameType], module: str) -> bool:
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame is not None


@contextlib.contextmanager
def trace_kept() -> Iterator[None]:
    before = sys.gettrace()
    try:
        yield
    finally:
        sys.settrace(before)


def lines_of(program: Program, directory: str) -> List[Line]:
    """Return every line of depyf that the program executes, in order."""
    tracer = Tracer()
    with trace_kept():
        program(directory, tracer.enter_phase)
    return list(tracer.lines)


_places: List[Tuple[Any, str]] = []
"""They are the same in each process."""


def hooked_places(directory: str) -> List[Tuple[Any, str]]:
    """Return where contexts install functions of depyf, by searching all of torch."""
    places: List[Tuple[Any, str]] = []
    with contextlib.redirect_stdout(io.StringIO()):
        for context in (depyf.prepare_debug(directory), *(make(directory) for make in CONTEXTS.values())):
            with context, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                places += _our_places()
    return list(dict.fromkeys(places))


def _our_places() -> Iterator[Tuple[Any, str]]:
    for name, module in list(sys.modules.items()):
        if not name.startswith("torch") or not hasattr(module, "__dict__"):
            continue
        for key, value in list(vars(module).items()):
            if _is_ours(value):
                yield module, key
            elif isinstance(value, type) and value.__module__ == name:
                yield from ((value, each) for each, held in list(vars(value).items()) if _is_ours(held))


def _is_ours(value: Any) -> bool:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    code = value.__code__ if isinstance(value, FunctionType) else None
    return code is not None and code.co_filename.startswith(PACKAGE)


class State:
    """The state of the process that a session changes, to be compared before and after."""

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
                "callback of runs": run_callback._read() if frame_evaluation.reports_runs() else None,
                "runs": (run_callback._callback.notes, list(run_callback._callback.installed)),
                "Dynamo's callback": callback,
                "stance": vars(torch_names.module("torch._dynamo.eval_frame")).get("_stance"),
                "debug": compiles_nothing(),
                "observers": list(observation._observers),
                "undo of observers": list(observation._undo),
                "traces": (_runs._open, list(_runs._undo)),
                "tracer of Dynamo": [list(getattr(each, "dispatch_table", ())) for each in _translators()],
                "dispatch modes": torch_names.module("torch._C")._len_torch_dispatch_stack(),
                "default type": torch.get_default_dtype(),
                "random numbers": (torch.get_rng_state().tolist(), random.getstate()),
                "settings": [(name, dict(_settings(name))) for name in ("_dynamo", "_functorch", "_inductor")],
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
                "signals": _signals(),
                "warnings": list(warnings.filters),
                "descriptors": _descriptors(),
            }
        )
        return found


def _translators() -> List[Any]:
    names = ("InstructionTranslator", "InliningInstructionTranslator")
    return [torch_names.module("torch._dynamo.symbolic_convert").__dict__[name] for name in names]


def _settings(name: str) -> Dict[str, Any]:
    return torch_names.module(f"torch.{name}.config").shallow_copy_dict()


def _timed() -> List[str]:
    """Return the wrappers of ``trace`` and ``find_nonfinite`` around compiled graphs and their backwards."""
    found = [name for name, value in globals().items() if hasattr(value, "_depyf_timed")]
    for owner in all_backward_classes():
        found += [name for name, each in vars(owner).items() if hasattr(each, "_depyf_original")]
    return found


def _held_locks() -> int:
    """Return how many of depyf's locks another thread can't acquire."""
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


def _signals() -> Any:
    """Return the blocked signals, and those that wait."""
    return (signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.sigpending()) if hasattr(signal, "sigpending") else ()


def _descriptors() -> Any:
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):
        return None
    paths = [os.path.realpath(f"{folder}/{each}") for each in os.listdir(folder)]
    return Counter(path for path in paths if not path.startswith("/proc/"))  # the listing itself


def faults_in(directory: str) -> List[str]:
    """Return the damaged files of a dump."""
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
    """Runs a program once for each line, and reports what each interruption has left behind."""

    def __init__(self, folder: str, program: Program = session_program) -> None:
        self._folder = folder
        self._program = program
        self._count = self._interruptions = 0
        _keep_dynamo_out_of_tracers()
        gc.collect()
        gc.freeze()  # existing objects live as long as the process: the collector need not visit them
        breakpointhook, sys.breakpointhook = sys.breakpointhook, lambda *args, **kwargs: None  # of ``debug``
        self._breakpointhook = breakpointhook
        self.expected = program(self._new_directory(), lambda phase: None)
        if not _places:
            _places.extend(hooked_places(self._new_directory()))
        lines_of(program, self._new_directory())  # initialisation that runs once in a process
        self.lines = lines_of(program, self._new_directory())
        self.files = self._session_files()
        self._state = State(_places)

    def close(self) -> None:
        """Restore what was changed in the process."""
        sys.breakpointhook = self._breakpointhook
        gc.unfreeze()

    def _new_directory(self) -> str:
        self._count += 1
        return os.path.join(self._folder, str(self._count))

    def _session_files(self) -> List[str]:
        directory = self._new_directory()
        assert self._program(directory, lambda phase: None) == self.expected
        if not os.path.isdir(directory):
            return []
        files = sorted(_NUMBER.sub("", each) for each in os.listdir(directory) if not each.startswith("."))
        shutil.rmtree(directory)
        return files

    def left_behind(self, line: Line, kind: Type[BaseException]) -> List[str]:
        """Interrupt the program at ``line`` and return what is wrong afterwards."""
        directory, wanted = self._new_directory(), kind("from outside")
        tracer = Tracer(line, wanted)
        before = self._state.read()
        got: Optional[BaseException] = None
        with trace_kept():
            try:
                self._program(directory, tracer.enter_phase)
            except BaseException as error:
                got = error
        wrong = [f"{each} is timed" for each in _timed()]
        if not tracer.raised:
            return ["the line was not executed"]
        if not tracer.torch_catches_it and not _is_or_comes_from(got, wanted):
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
        """Return what differs from ``before``."""
        torch._dynamo.reset()
        for collected in (False, True):
            if collected:
                gc.collect()
            after = self._state.read()
            changed = [key for key in after if before.get(key) != after[key]]
            if before["descriptors"] is not None:
                changed.remove("descriptors") if "descriptors" in changed else None
                opened = after["descriptors"] - before["descriptors"]
                # The lock of a writer of a directory is kept as long as the process lives.
                opened = [each for each in opened if f"{os.sep}.depyf_writers{os.sep}" not in each]
            if not changed and not opened:
                return []
        return [
            *(f"{key}: {before.get(key)!r} became {after[key]!r}" for key in changed),
            *(f"open: {each}" for each in opened),
        ]

    def _mend(self) -> None:
        """Close what is still open, so that the next line is judged independently."""
        for session in capture._sessions:
            capture.drop(session)


def chosen(lines: Sequence[Line], where: Sequence[str], every: int, first: int = 0) -> List[Line]:
    """Return each ``every``-th line of the phases in ``where``, without those before which no cleanup is possible."""
    found = [line for line in lines if line.phase in where]
    exits = [line for line in found if (os.path.basename(line.file), line.function) == BEFORE_ANYTHING]
    return [line for line in found if line not in exits[:1]][first::every]


def _part(text: str) -> Tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError("I/N is wanted, with I from 1 to N")
    return int(number), int(count)


def main() -> int:
    """Interrupt the programs at the lines that the arguments choose."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--where", action="append", choices=PHASES, help="only in this phase (may be given repeatedly)")
    parser.add_argument("--every", type=int, default=1, help="each so many-th line")
    parser.add_argument("--first", type=int, default=0, help="the number of the first line")
    parser.add_argument("--match", default="", help="only lines of files whose path ends like this")
    parser.add_argument("--part", type=_part, default=(1, 1), help="I/N: the I-th of N parts of these lines")
    options = parser.parse_args()
    logging.getLogger("depyf").setLevel(logging.CRITICAL)
    table: Dict[str, List[int]] = {}
    wrong: List[str] = []
    for phases, program in PROGRAMS.items():
        where = [phase for phase in phases if phase in (options.where or PHASES)]
        if where:
            with tempfile.TemporaryDirectory() as folder, contextlib.closing(
                Interrupter(folder, program)
            ) as interrupter:
                for phase in where:
                    lines = chosen(interrupter.lines, [phase], options.every, options.first)
                    lines = lines[options.part[0] - 1 :: options.part[1]]
                    lines = [line for line in lines if line.file.endswith(options.match)]
                    table[phase] = interrupt_at(lines, interrupter, wrong)
    print(f"{'where':<22}{'lines':>8}{'exceptions':>12}{'left behind':>13}")
    for phase, (count, exceptions, left_behind) in table.items():
        print(f"{phase:<22}{count:>8}{exceptions:>12}{left_behind:>13}")
    return 1 if wrong else 0


def interrupt_at(lines: Sequence[Line], interrupter: Interrupter, wrong: List[str]) -> List[int]:
    """Interrupt at each line; print and collect in ``wrong`` what is left behind. Return lines, exceptions, faults."""
    counts, start = [0, 0, 0], time.monotonic()
    for line in lines:
        counts[0] += 1
        for kind in TYPES:
            left = interrupter.left_behind(line, kind)
            counts[1] += 1
            counts[2] += bool(left)
            for each in left:
                wrong.append(f"{line}, {kind.__name__}: {each}")
                print(wrong[-1][:400], flush=True)
        if not counts[0] % 50 or counts[0] == len(lines):
            seconds = time.monotonic() - start
            rest = seconds / counts[0] * (len(lines) - counts[0])
            print(
                f"{line.phase}: {counts[0]} of {len(lines)} lines, {counts[2]} left something behind, "
                f"{seconds:.0f} s, {rest:.0f} s to go",
                file=sys.stderr,
                flush=True,
            )
    return counts


if __name__ == "__main__":
    sys.exit(main())
