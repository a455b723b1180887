"""``depyf run``: run a program and dump everything that it compiles."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import importlib.util
import os
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any, ContextManager, Iterator, List, NoReturn, Optional

from depyf.base.asynchronous import is_of_called, suppressed, suppressed_all, synchronous
from depyf.base.messages import describe, takes_escapes, write
from depyf.base.quick_dataclass import dataclass
from depyf.base.visible import visible
from depyf.dynamo.capture.progress import CompilationProgress
from depyf.running.following import is_one_of_many, let_children_follow, page_later, page_of_all, report_lines
from depyf.running.program import NoProgramError, ProgramEnd, UserProgram, run
from depyf.running.torch_import import when_compiler_is_imported
from depyf.torch_trace import file_names

if TYPE_CHECKING:
    from depyf.dynamo.questions.profile.block import Profile
    from depyf.dynamo.questions.shadow.question import Shadow
    from depyf.dynamo.questions.trace.question import Trace
    from depyf.report.model.run import Run

_STEPS = 5
"""How many steps of a program are profiled."""


class CannotRunError(Exception):
    """Raised when nothing was run; names the reason."""


@dataclass(frozen=True)
class SessionOptions:
    """Options of ``prepare_debug`` that ``depyf run`` has, too, and whether steps are profiled; and, if ``shadow`` is a
    number, one in so many calls of compiled code is checked against eager mode."""

    stepping: bool = True
    values: Optional[str] = None
    files: Optional[str] = None
    shadow: Optional[int] = None
    profile: bool = False
    json: Optional[str] = None
    """Where the summary is written as JSON."""


def run_dumped(
    program: UserProgram,
    directory: str,
    *,
    quiet: bool = False,
    view: Optional[str] = None,
    find_nonfinite: bool = False,
    trace: bool = False,
    follow: bool = False,
    session: Optional[SessionOptions] = None,
) -> ProgramEnd:
    """Run ``program`` and dump what it compiles into ``directory``; return how it ended.

    ``find_nonfinite`` searches for the first NaN or Inf of compiled code, ``follow`` dumps the program and processes
    that it starts into folders of their own, ``trace`` times its runs. ``session`` has options of ``prepare_debug``.
    The summary is printed when the process ends: threads of the program that continue, and its exit handlers, are part
    of it. Then the page is opened at ``view``, an address in it. Raises ``CannotRunError`` before anything has run.
    """
    if importlib.util.find_spec("torch") is None:
        raise CannotRunError("depyf run needs PyTorch: install it with `pip install torch`")
    importlib.import_module("depyf.dynamo.store.writers")  # its exit handler runs after later ones
    session = session or SessionOptions()
    _remove_answer(session.json)
    made, root = _prepare(directory), directory if follow else None
    if root is not None:
        directory = os.path.join(root, let_children_follow(root, session.values, session.files))
        made = _prepare(directory) + made
    progress = None if quiet or sys.stderr is None else CompilationProgress(sys.stderr)
    recording = _Recording(directory, progress, find_nonfinite=find_nonfinite, traced=trace, session=session)
    recording.root = root
    stop_waiting = when_compiler_is_imported(recording.begin)
    process = os.getpid()

    def at_exit() -> None:
        if os.getpid() != process:  # a forked child of the program writes its own report
            return
        stop_waiting()
        recording.end()
        _take_back(made)
        recording.report(quiet=quiet, view=view)

    atexit.register(at_exit)
    try:
        return _run(program, recording, quiet=quiet)
    except NoProgramError as error:
        atexit.unregister(at_exit)
        stop_waiting()
        recording.end()  # begun where the compiler was imported before
        _take_back(made)
        raise CannotRunError(str(error)) from error


def _run(program: UserProgram, recording: _Recording, *, quiet: bool) -> ProgramEnd:
    with contextlib.nullcontext() if quiet else _exits_reported(recording):
        end = run(program)
    recording.ended_with = end.words
    return end


@contextlib.contextmanager
def _exits_reported(recording: _Recording) -> Iterator[None]:
    """Print a line if the program calls ``os._exit``, which ends it without exit handlers: no summary is printed."""
    original, process = os._exit, os.getpid()

    @functools.wraps(original)
    def _exit(status: int) -> NoReturn:
        try:
            if os.getpid() == process:  # multiprocessing ends each forked child with it
                caller = sys._getframe(1)
                where = f"os._exit({status}) ({os.path.basename(caller.f_code.co_filename)}:{caller.f_lineno})"
                _say([visible(f"the program ended with {where}: {recording.what_is_lost()}")])
        finally:  # whatever a signal handler raises: the process was to end here
            original(status)

    os._exit = _exit
    try:
        yield
    finally:
        if os._exit is _exit:
            os._exit = original


def _alone(directory: str) -> ContextManager[bool]:
    """Return a lock that no other process of depyf holds for the same directory at the same time."""
    from depyf.dynamo.store.file_locks import exclusive

    return exclusive(directory)


def _prepare(directory: str) -> List[str]:
    """Make the directory; return the directories that did not exist before, the innermost first."""
    missing = []
    path = directory
    while not os.path.exists(path):
        missing.append(path)
        path = os.path.dirname(path)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except synchronous(OSError) as error:
        raise CannotRunError(f"{directory}: no directory can be made there ({error.strerror})") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise CannotRunError(f"{directory}: this directory can't be written (name another one with -o)")
    return missing


def _remove_answer(path: Optional[str]) -> None:
    """Remove the answer of an earlier run, which would pass for the answer of this one if it ends without an exit
    handler; any other file stays until it is written."""
    from depyf.running.documents import STARTS

    with suppressed(OSError):
        if path is not None and os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                is_answer = file.read(len(STARTS)) == STARTS
            if is_answer:
                os.unlink(path)


def _take_back(made: List[str]) -> None:
    """Remove the directories that are empty."""
    with suppressed(OSError):
        for path in made:
            os.rmdir(path)


class _Recording:
    """A ``prepare_debug`` session around what is compiled, from the program's import of the compiler on."""

    def __init__(
        self,
        directory: str,
        progress: Optional[CompilationProgress],
        *,
        find_nonfinite: bool,
        traced: bool,
        session: SessionOptions,
    ) -> None:
        self._directory = directory
        self._find_nonfinite = find_nonfinite
        self._finding: Optional[Any] = None
        self._progress = progress
        self._traced = traced
        self._session = session
        self._open: Optional[Any] = None
        self._trace: Optional[Trace] = None
        self._profile: Optional[Profile] = None
        self._measuring = contextlib.ExitStack()
        """What ends before the page is written: trace, profile, shadow."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.ended_with = ""
        """How the program ended, in words, if it was not with its last line."""
        self.root: Optional[str] = None
        """The directory with the folders of all processes, where children are followed."""
        self._shadow: Optional[Shadow] = None
        self._run: Optional[Run] = None
        """The model of the run, once ``summary`` has been called."""
        self.page: Optional[str] = None
        """The page of this run, once ``summary`` has been called."""

    def what_is_lost(self) -> str:
        """Return what is missing after an end without exit handlers."""
        if self._open is None:
            return "nothing was compiled before"
        return f"no summary was made (depyf report {self._directory} shows what had been written)"

    def begin(self) -> None:
        """Start the session while the program imports torch's compiler; exceptions must not reach the program."""
        try:
            self._begin()
        except BaseException as error:  # the program may have a finder that refuses depyf's modules with anything
            if not is_of_called(error):
                raise
            _say([f"nothing is dumped: {type(error).__name__}: {error}"])

    def _begin(self) -> None:
        from depyf.dynamo.dump.prepare import prepare_debug

        with self._lock:
            if self._open is not None:
                return
            chosen = self._session
            self._open = prepare_debug(
                self._directory, stepping=chosen.stepping, values=chosen.values, dump=chosen.files
            )
        self._open.__enter__()
        # Registered after the exit handler that writes the page, which the session has registered, and so called
        # before: the page is to show what was measured.
        atexit.register(self._end_measuring)
        if self.root is not None:
            from depyf.dynamo.dump.own_folder import keep_following

            keep_following(self.root, self._open)
        if self._traced:
            from depyf.dynamo.questions.trace.question import trace

            self._trace = self._measuring.enter_context(trace())
        if chosen.profile:
            from depyf.dynamo.questions.profile.block import Profile

            try:
                self._profile = self._measuring.enter_context(Profile(steps=_STEPS))
                self._profile.step_at_each_backward()
            except synchronous(RuntimeError) as error:
                _say([f"nothing is profiled: {error}"])
        if self._progress is not None and self._open.session is not None:
            self._progress.follow(self._open.session)
        if self._find_nonfinite:
            from depyf.dynamo.questions.nonfinite.question import find_nonfinite

            finding = find_nonfinite(self._directory)
            finding.__enter__()
            self._finding = finding
        if self._session.shadow is not None:
            from depyf.dynamo.questions.shadow.question import shadow

            # Quiet: what is found is printed, and no summary.
            callback = None if self._progress is not None else lambda found: _say([f"shadow: {found}"])
            self._shadow = self._measuring.enter_context(shadow(self._session.shadow, callback=callback))

    def _end_measuring(self) -> None:
        if os.getpid() == self._process:
            self._measuring.close()

    def end(self) -> None:
        if self._progress is not None:
            self._progress.end()
        self._end_measuring()
        if self._open is not None:
            self._open.__exit__(None, None, None)
        if self._finding is not None:  # after the dump, which reads the cache entries
            self._finding.__exit__(None, None, None)

    def report(self, *, quiet: bool, view: Optional[str]) -> None:
        """Write the pages, and print what was compiled; open the page at ``view``, its address in the page, if any."""
        with _alone(self.root or self._directory):  # ranks end at the same time: one summary after the other
            lines = self.summary()
            if self.root is not None:
                of_all = report_lines(self.root)
                lines = of_all if of_all and self._open is None else lines + of_all  # its children compiled something
                self.page = page_of_all(self.root)
            if not quiet:
                _say(lines)
            if self._session.json is not None:
                try:
                    self._write_answer(self._session.json, lines)
                except synchronous(Exception) as error:
                    _say([f"{self._session.json} could not be written: {describe(error)}"])
        if view is not None and self.page is not None:
            address = f"{Path(self.page).as_uri()}{view}"
            if view and not quiet:  # browsers may drop what is after the #, or there is none
                _say([f"the page at {view[1:]}: {address}"])
            webbrowser.open(address)

    def _write_answer(self, path: str, lines: List[str]) -> None:
        """Write what ``lines`` say as JSON (docs/json.md)."""
        from depyf.report.render.hidden_values import TYPES, HiddenValues, chosen_values
        from depyf.report.render.reported import RanProgram, reported
        from depyf.report.render.run_without_values import Hiding, shadowed_without_values
        from depyf.report.render.terminal_links import without_links
        from depyf.running.documents import write_answer

        run = self._run
        text, ended_with = without_links("\n".join(lines)), self.ended_with
        shadowed = None if self._shadow is None else self._shadow.answer
        session = None if self._open is None else self._open.session
        if session is not None:
            hidden = session.stable.hidden
        else:
            hidden = HiddenValues() if chosen_values(self._session.values) == TYPES else None
        if hidden is not None:  # in this file, too
            ended_with = hidden.message(self.ended_with)
            text = text.replace(visible(self.ended_with), visible(ended_with)) if self.ended_with else text
            shadowed = None if shadowed is None else shadowed_without_values(shadowed, Hiding(hidden))
        name = "" if run is None or run.rank is None else f"rank {run.rank}"
        answer = RanProgram(
            self._directory,
            self.page,
            ended_with,
            None if run is None or not run.compilations else reported(run, name, self._directory),
            profile=None if self._profile is None else self._profile.answer,
            trace=None if self._trace is None else self._trace.answer,
            nonfinite=None if self._finding is None else self._finding.answer,
            shadow=shadowed,
        )
        write_answer(path, answer, text)

    def summary(self) -> List[str]:
        """Return the lines of the summary. The program has ended, so a failure here must not change its exit status."""
        if self._open is None:
            old = os.path.join(self._directory, file_names.page_file())
            lines = ["nothing was compiled: the program did not use torch.compile"]
            if self.ended_with:
                lines = [visible(f"nothing was compiled: the program ended with {self.ended_with}")]
            return [*lines, f"{old} is of an earlier run"] if os.path.exists(old) else lines
        try:
            return self._summary()
        except BaseException as error:
            if not is_of_called(error):
                raise
            return [f"no summary: {type(error).__name__}: {error}", f"{'the dump':<24}{self._directory}"]

    def _summary(self) -> List[str]:
        from depyf.dynamo.dump.manifest import page_of, run_of
        from depyf.report.read.own_files import page_stem
        from depyf.report.read.ranks import of_runs
        from depyf.report.read.reading import (
            left_out,
            manifests_in_directory,
            named_apart,
            of_the_same_launch,
            with_damaged,
        )
        from depyf.report.render.summary import summary_lines, whose_page
        from depyf.report.render.terminal_links import addresses_of_lines, hyperlink, with_links
        from depyf.report.render.writing import write_report

        if self._open is None or self._open.session is None:
            return []
        ours = self._run = run_of(self._open.session)
        lines = [] if self._trace is None else str(self._trace).splitlines()
        lines += [] if self._profile is None else str(self._profile).splitlines()
        lines += summary_lines(ours)
        if self.ended_with and not ours.compilations:
            lines.append(visible(f"{'ended with':<24}{self.ended_with}"))
        if self._finding is not None:
            first, *details = str(self._finding).splitlines()
            lines += [f"{'not finite':<24}{first}", *details]
        # Other ranks that have ended are on the page, too; the files of an earlier run are not.
        of_many = is_one_of_many()
        found, damaged = ([], []) if of_many else manifests_in_directory(self._directory)
        lines += [visible(f"! {left_out(each)}") for each in damaged]
        runs = named_apart([with_damaged(each, damaged) for each in of_the_same_launch(found, ours)])
        self.page = self._under_its_name(page_of(self._open.session))
        if len(runs) > 1 or (runs and damaged):
            ranks = of_runs(runs)
            self.page = write_report(
                ranks, os.path.join(self._directory, file_names.page_file(page_stem(self._directory)))
            )
            lines += [f"! {each['title']}" for each in ranks.differences()]
        if of_many and self.root is None:
            lines.append(page_later(self._directory))
        if self.page is None:
            return [*lines, f"{'the dump':<24}{self._directory}"]
        whose = whose_page(ours, [each.run for each in runs], of_many=of_many)
        page = self.page
        if takes_escapes(sys.stderr):
            number = next((at for at, each in enumerate(runs) if each.run.rank == ours.rank), None)
            addresses = addresses_of_lines(ours, page, number if len(runs) > 1 else None)
            lines = [with_links(line, addresses) for line in lines]
            page = hyperlink(Path(page).resolve().as_uri(), page)
        return [*lines, f"{'the page':<24}{page}{whose}"]

    def _under_its_name(self, page: Optional[str]) -> Optional[str]:
        """Return the path of the page in the directory that was named, and not in a link to it that is removed."""
        if page is None or (os.path.exists(page) and not os.path.samefile(os.path.dirname(page), self._directory)):
            return page
        return os.path.join(self._directory, os.path.basename(page))


def _say(lines: List[str]) -> None:
    with suppressed(OSError, ValueError, AttributeError):  # the program may have closed it, or there is none
        sys.stdout.flush()
    lines = [f"depyf: {part}" for line in lines for part in line.split("\n")]
    with suppressed_all():
        from depyf.dynamo.hooks.safely import with_rank

        lines = [with_rank(line) for line in lines]
    write(sys.stderr, "".join(f"{line}\n" for line in lines))
