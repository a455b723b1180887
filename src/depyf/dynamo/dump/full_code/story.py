"""The facts about one user function at the end of a session: its cache entries, and its resume functions."""

from __future__ import annotations

import itertools
from dataclasses import field
from types import CodeType
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler import RESUME_PREFIX
from depyf.dynamo.capture.fallbacks import fallbacks
from depyf.dynamo.capture.records import FrameSkipped, TransformedCode
from depyf.dynamo.capture.rendering import render
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.notes import explanation
from depyf.dynamo.entries.hints import resume_code
from depyf.dynamo.hooks import cache_entries
from depyf.dynamo.hooks.cache_entries import global_scope
from depyf.dynamo.hooks.nested_code import names_in
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.torch_types import Guards
from depyf.dynamo.store.names import StableNames, file_stem
from depyf.torch_trace import file_names
from depyf.torch_trace.breaks import break_report
from depyf.torch_trace.events import GRAPH_BREAK

EARLIER = "Compiled before prepare_debug was entered, or after it was left."

THROWN_AWAY = "Dynamo has thrown its code away, because an object is gone that its guards depended on."


@dataclass(frozen=True)
class Entry:
    """One cache entry: its transformed code and its guards.

    ``name`` is the name of the transformed function, as in its own file. ``manager`` is None when the entry has left
    the cache. Without ``source`` (None), ``listing`` shows the bytecode. ``code`` is the code object that runs, None
    when it was deleted.
    """

    name: str
    number: int
    compile_id: Optional[str]
    manager: Optional[Guards] = field(repr=False)
    code: Optional[CodeType] = field(repr=False)
    source: Optional[str] = field(repr=False)
    listing: str = field(repr=False)
    verdict: str = ""
    reason: str = ""
    file: Optional[str] = None
    notes: Tuple[str, ...] = ()
    """Further notes about this compilation, a line each."""


@dataclass(frozen=True)
class Story:
    """One original code object with its entries in the order in which Dynamo tries them.

    A resume function has in ``called_as`` the global name by which transformed code calls it; with ``takes_cells`` the
    call passes closure cells and returns the function. ``fallbacks`` has the reasons why calls run eagerly.
    """

    code: CodeType
    entries: Tuple[Entry, ...]
    called_as: Optional[str] = None
    takes_cells: bool = False
    fallbacks: Tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        return file_stem(self.code.co_name)


@dataclass(frozen=True)
class _Resume:
    code: CodeType
    called_as: str
    takes_cells: bool


def stories_of(session: Session) -> List[List[Story]]:
    """Return for every transformed user function its story, followed by the stories of its resume functions."""
    return _families(session.original_codes(), _Known.of(session))


def stories_of_code(code: CodeType, stable: StableNames) -> List[Story]:
    """Return the stories of one function that was compiled at any time, from its cache entries alone. Raises
    ``RuntimeError`` when they can't be read; the reason has been reported."""
    codes, known = [code], _Known(stable)
    for each in codes:
        # The loop appends the resume functions that it finds, and so visits their resume functions, too.
        codes += [r.code for r in _resumes(_story(each, known), stable) if not any(r.code is c for c in codes)]
    found = next((family for family in _families(codes, known) if family[0].code is code), None)
    if found is None:
        raise RuntimeError(f"the cache entries of {code.co_name} can't be read")
    return found


@dataclass(frozen=True)
class _Known:
    """A session's knowledge of its functions: none, if they were compiled without one."""

    stable: StableNames
    records: Mapping[int, Sequence[TransformedCode]] = field(default_factory=dict)
    fallbacks: Mapping[int, Sequence[Tuple[FrameSkipped, str]]] = field(default_factory=dict)
    """Records and fallbacks by the id of the original code, as long as the code is alive."""
    notes: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(session: Session) -> _Known:
        explain = safely("explaining in a full_code file why a function runs as plain Python")(explanation)
        break_notes = safely("listing graph breaks in a full_code file")(_break_notes)
        records: Dict[int, List[TransformedCode]] = {}
        for record in session.records(TransformedCode):
            records.setdefault(id(record.original_code()), []).append(record)
        skipped: Dict[int, List[Tuple[FrameSkipped, str]]] = {}
        for frame in fallbacks(session):
            code = None if frame.original_code is None else frame.original_code()
            why = session.message("\n".join(explain(session, frame) or ()))
            skipped.setdefault(id(code), []).append((frame, why))
        notes = {compile_id: break_notes(session, compile_id) or () for compile_id in session.compile_ids()}
        return _Known(session.stable, records, skipped, notes)

    def records_of(self, code: CodeType) -> List[TransformedCode]:
        return [record for record in self.records.get(id(code), ()) if record.original_code() is code]

    def fallbacks_of(self, code: CodeType) -> Tuple[str, ...]:
        found = self.fallbacks.get(id(code), ())
        return tuple(text for frame, text in found if frame.original_code and frame.original_code() is code)


def _break_notes(session: Session, compile_id: str) -> Tuple[str, ...]:
    reports = [break_report(event) for event in session.events(GRAPH_BREAK, compile_id)]
    return tuple(
        session.message(session.stable.text(f"Graph break at {each.filename}:{each.line}: {each.title}"))
        for each in reports
    )


def _families(codes: Sequence[CodeType], known: _Known) -> List[List[Story]]:
    """Return the stories by user function; a failure for one function does not affect the others."""
    stories: Dict[int, Story] = {}
    resumes: Dict[int, List[_Resume]] = {}
    for code in codes:
        read = safely(f"reading the cache entries of {code.co_name} for its full_code file")(_story_and_resumes)
        both = read(code, known)
        if both is not None:
            stories[id(code)], resumes[id(code)] = both
    resumed = {id(resume.code) for found in resumes.values() for resume in found}
    roots = [code for code in codes if id(code) in stories and id(code) not in resumed]
    return [list(_family(code, stories, resumes, known)) for code in roots]


def _story_and_resumes(code: CodeType, known: _Known) -> Tuple[Story, List[_Resume]]:
    story = _story(code, known)
    return story, _resumes(story, known.stable)


def _family(
    root: CodeType, stories: Mapping[int, Story], resumes: Mapping[int, Sequence[_Resume]], known: _Known
) -> Iterator[Story]:
    # Depth first, in the order in which code names them: a resume function is followed by its own resume functions.
    # Dynamo gives one resume function several global names if several entries call it: each name is a story.
    yield stories[id(root)]
    seen: Set[Tuple[int, str]] = set()
    todo = list(resumes[id(root)])
    while todo:
        resume = todo.pop(0)
        key = (id(resume.code), resume.called_as)
        if key in seen:
            continue
        seen.add(key)
        entries = stories[id(resume.code)].entries if id(resume.code) in stories else ()
        fallbacks = known.fallbacks_of(resume.code)
        yield Story(resume.code, entries, resume.called_as, resume.takes_cells, fallbacks)
        todo = [*resumes.get(id(resume.code), ()), *todo]


def _story(code: CodeType, known: _Known) -> Story:
    records = known.records_of(code)
    numbers = {record.index for record in records}
    entries: List[Entry] = []
    by_running_code = {id(record.running_code()): record for record in reversed(records)}
    cached_entries = cache_entries.cache_entries(code)
    of_others = {id(cached.code) for cached in cached_entries if cached.code is not None}
    # 1. What is in Dynamo's cache, in the order in which Dynamo tries it. The record of an entry is found by the code
    #    object that runs; an entry whose code was deleted, by its compile id; an entry that was compiled outside of any
    #    session has no record, and gets a number that is free.
    for cached in cached_entries:
        if cached.code is not None:
            record = by_running_code.get(id(cached.code))
        else:
            record = _record_of_dead(cached, records, of_others)
        if record is not None:
            entries.append(_entry(record, cached.code, cached.guard_manager, known))
        else:
            number = next(number for number in itertools.count() if number not in numbers)
            numbers.add(number)
            entries.append(_entry_without_record(code, cached, number, known.stable))
    # 2. What was compiled and has left the cache since.
    present = {entry.name for entry in entries}
    entries += [_entry(record, None, None, known) for record in records if _name(record) not in present]
    return Story(code, tuple(entries), fallbacks=known.fallbacks_of(code))


def _record_of_dead(
    cached: cache_entries.CacheEntry, records: Sequence[TransformedCode], of_others: Set[int]
) -> Optional[TransformedCode]:
    """Return the record of a cache entry whose code was deleted (see ``CacheEntry``), found by its compile id alone.
    ``of_others`` are the ids of the code of the function's other cache entries: the same compile ids come again after
    ``torch._dynamo.reset``."""
    latest_first = (record for record in reversed(records) if id(record.running_code()) not in of_others)
    return next((r for r in latest_first if cached.compile_id is not None and r.compile_id == cached.compile_id), None)


def _entry_without_record(
    original: CodeType, cached: cache_entries.CacheEntry, number: int, stable: StableNames
) -> Entry:
    """Return an entry that was compiled outside of any capture, with its code decompiled now."""
    name = file_names.transformed_stem(number, file_stem(original.co_name))
    if cached.code is None:
        return Entry(name, number, cached.compile_id, cached.guard_manager, None, None, THROWN_AWAY, notes=(EARLIER,))
    rendering = render(cached.code, original, name, f"<{name}>", stable)
    return Entry(
        name=name,
        number=number,
        compile_id=cached.compile_id,
        manager=cached.guard_manager,
        code=cached.code,
        source=rendering.source,
        listing=rendering.text,
        verdict=rendering.verdict,
        reason=rendering.reason,
        notes=(EARLIER,),
    )


def _name(record: TransformedCode) -> str:
    return file_names.transformed_stem(record.index, file_stem(record.function))


def _entry(record: TransformedCode, code: Optional[CodeType], manager: Optional[Guards], known: _Known) -> Entry:
    return Entry(
        name=_name(record),
        number=record.index,
        compile_id=record.compile_id,
        manager=manager,
        code=code if code is not None else record.running_code(),
        source=record.source,
        listing=record.text,
        verdict=record.verdict,
        reason=record.reason,
        file=record.path,
        notes=(EARLIER,) if record.earlier else known.notes.get(record.compile_id or "", ()),
    )


def _resumes(story: Story, stable: StableNames) -> List[_Resume]:
    """Return the resume functions of the transformed code of ``story``, in the order in which it names them."""
    found: Dict[str, _Resume] = {}
    for entry in story.entries:
        scope = global_scope(entry.manager)
        for name in names_in(entry.code) if entry.code is not None else ():
            code, takes_cells = resume_code(scope.get(name)) if name.startswith(RESUME_PREFIX) else (None, False)
            if code is not None:
                found.setdefault(name, _Resume(code, stable.text(name), takes_cells))
    return list(found.values())
