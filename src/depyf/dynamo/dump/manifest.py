"""Write ``manifest.json``, ``index.md`` and ``index.html``: what a directory holds and what happened, in one model.

A directory has one of each for each process that dumps into it, about all sessions of that process: each session
rewrites the three files with the data of the earlier sessions. The text of files is not kept in memory. If many
sessions follow each other quickly, not every session writes, as the cost would be quadratic. A note in the directory
says so until the files are up to date, at the latest when the process ends.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
import time
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.locks import Lock
from depyf.base.messages import warn
from depyf.base.own_package import recompiled_each_time
from depyf.base.quick_dataclass import replace
from depyf.base.without_collector import without_collector
from depyf.dynamo.capture.launches import with_chosen_launches
from depyf.dynamo.capture.passes import cached_passes_text
from depyf.dynamo.capture.plain_calls import NOTHING, plain_calls_text, unguarded_text, why_empty
from depyf.dynamo.capture.records import (
    CompiledFunction,
    FullCodeFile,
    GraphFile,
    Incomplete,
    KernelFile,
    PassesFile,
    Record,
    ShadowFound,
    TransformedCode,
)
from depyf.dynamo.capture.session import Session
from depyf.dynamo.capture.shadow_looks import ShadowLook, together
from depyf.dynamo.dump.chronicle import BEHIND, BEHIND_TEXT, MISSED_TEXT, Chronicle, EndedProcess, EndedSessions
from depyf.dynamo.dump.facts import (
    artifacts_of,
    fallback_facts,
    full_code_of,
    graph_names,
    transformed_facts,
    with_passes,
)
from depyf.dynamo.guards.live_values import forget
from depyf.dynamo.hooks import frame_evaluation, structured_trace_listener, torch_names
from depyf.dynamo.hooks.safely import Failure, failure_listeners, safely
from depyf.dynamo.store.directory import DumpDirectory
from depyf.report.analysis.facts import Facts, Files, Recorder, ShadowFact
from depyf.report.analysis.from_events import build_run, without_events
from depyf.report.analysis.timings import with_timings
from depyf.report.diff.matching import ComparedRun
from depyf.report.diff.rank_summary import summary_json, summary_of
from depyf.report.model.headline import many
from depyf.report.model.manifest import to_json, without_texts
from depyf.report.model.run import Run
from depyf.report.read.own_files import MARKDOWN_MARK, manifest_name, page_stem, summary_name
from depyf.report.render.markdown import index_markdown
from depyf.report.render.page import render_page
from depyf.report.render.run_without_values import Hiding, run_without_values
from depyf.torch_trace import file_names
from depyf.torch_trace.events import Event
from depyf.torch_trace.generations import distinguished
from depyf.torch_trace.launches import current_launch

_chronicles: Dict[int, Chronicle] = {}
_lock = Lock()


def _note_failure(failure: Failure) -> None:
    """Record a failure in each session that is open or flushed: its dump may lack a part."""
    for known in list(_chronicles.values()):
        for session in list(known.open):
            text = session.message(str(failure))
            if not any(record.failure == text for record in session.records(Incomplete)):
                session.add(Incomplete(None, text))


failure_listeners.append(_note_failure)


def begin(session: Session) -> None:
    """Note that the session begins to receive."""
    with _lock:
        known = _chronicles.setdefault(id(session.directory), Chronicle(time.time()))
        known.open.append(session)
        # Equal values have one name in a directory. Once a session has hidden values, the page of all sessions does.
        if session.stable.hidden is not None:
            known.hidden = session.stable.hidden = known.hidden or session.stable.hidden
        session.directory.files_of_ended = EndedProcess(session.directory.path, lambda: _bare_run(known)).files


def note_runs(session: Session) -> None:
    """Record how often the transformed code of this session has run, while that can be known."""
    known = _chronicles.get(id(session.directory))
    if known is not None:
        for graph, (count, seconds) in session.graph_times.items():
            earlier = known.times.get(graph, (0, 0.0))
            known.times[graph] = (earlier[0] + count, earlier[1] + seconds)
            known.stale = True  # the written files lack it
        session.graph_times.clear()
        known.stale = known.stale or bool(session.looks)
    for record in session.records(TransformedCode):
        times = session.times_run(record)
        if known is not None and times is not None and (frame_evaluation.reports_runs() or session.ran):
            key = (record.compile_id, record.function, record.index)
            known.runs[key] = max(times, known.runs.get(key, 0))


def reset_after_fork() -> None:
    """Drop, in a forked child, what happened so far: the parent reports it."""
    with _lock:
        for known in _chronicles.values():
            known.ended, known.written, known.forked, known.page = EndedSessions(), None, True, None
            known.postponed, known.stale, known.missed, known.behind = False, False, (), None
            known.skipped = {id(session): session.count() for session in known.open}
            known.looks = []
            for session in known.open:
                session.looks = [ShadowLook(each.count) for each in session.looks if each.is_open]


def move_after_fork(session: Session, parents: DumpDirectory) -> None:
    """Dump into another directory from now on. For a forked child, after ``reset_after_fork``."""
    with _lock:
        known = _chronicles.pop(id(parents), None)
        if known is not None:
            known.started, known.forked = time.time(), False
            _chronicles[id(session.directory)] = known


@safely("writing the manifest")
def write_manifest(session: Session, *, at_once: bool = False) -> None:
    """Write the files about the directory of ``session``, when the session or the process ends.

    Without ``at_once`` this may be postponed until a later session or the process ends.
    """
    with _lock:
        known = _chronicles.get(id(session.directory))
        if known is None or not is_behind(session):
            return
        # The first time is always now; later ones are paid from the budget, a share of the time that has passed.
        if at_once or known.written is None or known.budget.allows():
            with known.budget.spending():
                records = known.records()
                known.written = known.count()
                # If writing is interrupted or fails, the process tries again when it ends.
                known.postponed = known.stale = True
                with without_collector():
                    missed = _write(session, known, records)
            known.postponed = known.stale = bool(missed)
            _say_what_is_missed(session, known, missed)
        elif not known.postponed:
            known.postponed = True
            known.behind = session.directory.write(BEHIND, BEHIND_TEXT)


def is_behind(session: Session) -> bool:
    """Return whether ``write_manifest`` would write something."""
    known = _chronicles.get(id(session.directory))
    if known is None or session.directory.is_to_be_made:  # nothing was compiled by a process that nobody asked about
        return False
    return known.stale or known.count() > known.at_least()


def _say_what_is_missed(session: Session, known: Chronicle, missed: Tuple[str, ...]) -> None:
    """Report in a message and in a file which files could not be written; remove that file when all are written."""
    directory = session.directory
    # A missing file is not mentioned again, since the failure to write it was reported. A file of an earlier session
    # would be taken for the new one.
    old = [name for name in missed if os.path.lexists(directory.file(name))]
    if old and missed != known.missed:
        warn(
            "%s in %s could not be replaced: the files that are there show only what was compiled before. "
            "depyf tries again when the next session ends, and at exit",
            ", ".join(old),
            directory.path,
        )
        # Failures to write these files are no failures of the dump: the next page must not list them.
        before = set(_failures(known.records()))
        known.behind = directory.write(BEHIND, MISSED_TEXT % ", ".join(old)) or known.behind
        known.own_failures |= set(_failures(known.records())) - before
    elif not missed and known.behind is not None:
        directory.remove(known.behind)
        known.behind = None
    known.missed = missed


def write_postponed() -> None:
    """Write postponed files at process exit, in directories that still exist."""
    for known in list(_chronicles.values()):
        if known.postponed and known.last is not None and known.last.directory.exists():
            write_manifest(known.last, at_once=True)


def end(session: Session) -> None:
    """Keep the records of an ended session, for the files of a later one."""
    with _lock:
        known = _chronicles.get(id(session.directory))
        if known is not None and session in known.open:
            records = session.all_records()[known.skipped.pop(id(session), 0) :]
            known.last = session.of_records(())
            known.notes.update(dict.fromkeys(_notes(session)))
            known.looks += session.looks
            dropped = known.ended.add([_without_text(record) for record in records], time.time())
            forget(_full_code(dropped) - _full_code(known.ended.records()))
            for record in dropped:
                if isinstance(record, TransformedCode):
                    known.runs.pop((record.compile_id, record.function, record.index), None)
                elif isinstance(record, CompiledFunction):
                    for backward in (False, True):
                        known.times.pop((record.stable_name, backward), None)
            known.open = [each for each in known.open if each is not session]


def _full_code(records: Sequence[Record]) -> Set[str]:
    return {each.path for each in records if isinstance(each, FullCodeFile)}


def _without_text(record: Record) -> Record:
    """Return the record without the text of its file: processes may dump into many directories, and live long."""
    if isinstance(record, (GraphFile, KernelFile, PassesFile, TransformedCode)) and record.path is not None:
        return replace(record, text="")
    return record


def _write(session: Session, known: Chronicle, records: Sequence[Record]) -> Tuple[str, ...]:
    """Write the page, the index and the manifest; return the names of those that could not be written."""
    suffix = _suffix(session.directory, known)
    stem = page_stem(session.directory.path, suffix)
    run, texts = safely("reading what happened, for the page and the index")(_run_of)(session, known, records) or (
        _bare_run(known),
        {},
    )

    def page(run: Run) -> str:
        return render_page(without_texts(run), lambda artifact: texts.get(artifact.id))

    made = {
        file_names.page_file(stem, suffix): page,
        file_names.index_file(stem, suffix): lambda run: f"{MARKDOWN_MARK}\n\n{index_markdown(run)}",
        manifest_name(session.directory.path, suffix): lambda run: to_json(without_texts(run)),
    }
    if run.rank is not None and not suffix:  # forked children are not compared with other ranks
        made[summary_name(session.directory.path)] = lambda run: summary_json(
            summary_of(ComparedRun("", run, lambda artifact: texts.get(artifact.id)))
        )
    # Each file lists the failures of the whole dump. Making one of them may fail, which the others have to list: they
    # are made again until no new failure comes, at most once for each file.
    contents: Dict[str, Optional[str]] = {}
    failures = None
    for _ in range(len(made)):
        if failures == _reported_failures(known):
            break
        failures = _reported_failures(known)
        contents = {name: _text(name, make, run, _bare_run(known), failures) for name, make in made.items()}
    before = set(_failures(known.records()))
    written = {name: session.directory.write(name, text) if text else None for name, text in contents.items()}
    known.own_failures |= set(_failures(known.records())) - before
    known.page = next(iter(written.values()))
    return tuple(name for name, path in written.items() if path is None)


def _text(name: str, make: Callable[[Run], str], run: Run, bare: Run, failures: Tuple[str, ...]) -> Optional[str]:
    """Return the text of the file ``name``. If that fails, return a text with the error; None if that fails, too."""
    make_safely = safely(f"writing {name}")(make)
    text = make_safely(replace(run, failures=tuple(dict.fromkeys((*run.failures, *failures)))))
    return make_safely(replace(bare, failures=failures)) if text is None else text


def _bare_run(known: Chronicle) -> Run:
    """Return the minimal facts about a run that can't be described."""
    return _shown(without_events(_origin(known), known.started), known)


def _shown(run: Run, known: Chronicle) -> Run:
    """Return the run as the files show it."""
    return run if known.hidden is None else run_without_values(run, Hiding(known.hidden))


def _origin(known: Chronicle) -> Recorder:
    return Recorder(
        rank=torch_names.distributed_rank(),
        command=[os.path.basename(sys.executable), *sys.argv] if sys.argv else [],
        started=known.started,
        depyf=_version(),
        torch=torch_names.torch_version(),
        python=platform.python_version(),
        launch=current_launch(),
    )


def _notes(session: Session) -> List[str]:
    nothing = why_empty(session)
    own = [nothing] if nothing else [*plain_calls_text(session), *cached_passes_text(session)]
    slow = recompiled_each_time()
    return [*session.notes, *own, *unguarded_text(session), *([slow] if slow else [])]


def _failures(records: Sequence[Record]) -> Tuple[str, ...]:
    return tuple(dict.fromkeys(record.failure for record in records if isinstance(record, Incomplete)))


def _reported_failures(known: Chronicle) -> Tuple[str, ...]:
    return tuple(each for each in _failures(known.records()) if each not in known.own_failures)


def page_of(session: Session) -> Optional[str]:
    """Return the page that this process has written about the directory of ``session``; None if it was not written."""
    known = _chronicles.get(id(session.directory))
    if known is None:
        return None
    if known.postponed:
        write_manifest(session, at_once=True)
    return known.page


def run_of(session: Session) -> Run:
    """Return the model of all that this process has seen of the directory of ``session``."""
    with _lock:
        known = _chronicles.get(id(session.directory)) or Chronicle(time.time(), open=[session])
        return _run_of(session, known, known.records())[0]


def _run_of(session: Session, known: Chronicle, records: Sequence[Record]) -> Tuple[Run, Dict[str, str]]:
    # After ``torch._dynamo.reset`` the same compile ids come again: they are made unique before anything is keyed by
    # them.
    records = distinguished(records)
    artifacts = artifacts_of(records, session.directory.name_of)
    events = [record for record in records if isinstance(record, Event)]
    run = build_run(
        events,
        artifacts,
        origin=_origin(known),
        files=Files(
            names={number: path for path, number in dict(structured_trace_listener.interned_strings()).items()},
            directory=_working_directory(),
        ),
        facts=Facts(
            graphs=graph_names(records),
            transformed=transformed_facts(records, known.runs, known.times),
            fallbacks=fallback_facts(session, records),
            full_code=full_code_of(records),
            shadowed=_shadowed(session, known, records),
        ),
    )
    run = with_chosen_launches(with_passes(run, records), records)
    measured = [timing for each in (*known.open, session) for timing in each.profiled]
    run = with_timings(run, list({id(timing): timing for timing in measured}.values())) if measured else run
    notes = dict.fromkeys((*known.notes, *(note for each in known.open for note in _notes(each))))
    # "Nothing was compiled" is about one session; another session of the same directory has compiled something.
    if any(each.status == "compiled" for each in run.compilations):
        notes = {note: None for note in notes if not note.startswith(NOTHING)}
    run = replace(run, notes=(*notes, *_left_out(known), *run.notes), shown_since=known.ended.shown_since)
    _log_once(run.failures, session, known)
    reported = (each for each in _failures(records) if each not in known.own_failures)
    run = replace(run, failures=(*run.failures, *reported))
    return _shown(run, known), {artifact.id: artifact.content or "" for artifact in artifacts}


def _shadowed(session: Session, known: Chronicle, records: Sequence[Record]) -> Optional[ShadowFact]:
    """Return what ``shadow`` has found beside the sessions; None if none was open."""
    looks = [look for each in (*known.open, session) for look in each.looks]
    counts = together([*known.looks, *looks])
    found = dict.fromkeys((each.compile_id, each.found) for each in records if isinstance(each, ShadowFound))
    return None if counts is None else ShadowFact(counts, tuple(found))


def _left_out(known: Chronicle) -> List[str]:
    """Return a note if the page does not show all sessions of this process."""
    ended = known.ended
    if not ended.dropped:
        return []
    return [
        f"This process has ended {many(ended.dropped + ended.MOST, 'session')} in this directory. Shown are the last "
        f"{ended.MOST}; the files of the others are in the directory"
    ]


def _log_once(failures: Sequence[str], session: Session, known: Chronicle) -> None:
    """Log each failure to read a part of the run once for each directory."""
    for each in failures:
        if each not in known.logged:
            known.logged.add(each)
            path = session.directory.path
            warn("%s. Your program continues; the page in %s lacks that alone. Please report it", each, path)


def _suffix(directory: DumpDirectory, known: Chronicle) -> str:
    """Return the suffix of the files of a forked child, which may write and end before its parent writes. Ranks need no
    suffix: the directory gives their files other names.
    """
    return f".{file_names.process_mark(directory.process_number())}" if known.forked else ""


def _working_directory() -> str:
    try:
        return os.getcwd()
    except synchronous(OSError):
        return ""


@functools.lru_cache(maxsize=1)  # a file is read and parsed
def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("depyf")
    except metadata.PackageNotFoundError:
        return ""
