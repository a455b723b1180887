"""What is known about one user function at the end of a session: its cache entries, and its resume functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.dynamo import compat
from depyf.dynamo.names import file_stem
from depyf.dynamo.session import Session, TransformedCode

RESUME_PREFIX = "__resume_at_"


@dataclass(frozen=True)
class Entry:
    """One cache entry: its transformed code and what guards it.

    ``name`` is that of the transformed function, the same as in its own file. ``manager`` is None when the entry has
    left the cache. ``source`` is None when there is none; ``listing`` then shows the bytecode. ``code`` is the code
    object that runs, None when it is gone.
    """

    name: str
    number: int
    compile_id: Optional[str]
    manager: Optional[Any] = field(repr=False)
    code: Optional[CodeType] = field(repr=False)
    source: Optional[str] = field(repr=False)
    listing: str = field(repr=False)
    verdict: str = ""
    reason: str = ""
    file: Optional[str] = None


@dataclass(frozen=True)
class Story:
    """One original code object with its entries in the order in which Dynamo tries them.

    ``called_as`` is the global name by which transformed code calls it, for a resume function; ``takes_cells`` says
    that it is then called with closure cells and answers the function.
    """

    code: CodeType
    entries: Tuple[Entry, ...]
    called_as: Optional[str] = None
    takes_cells: bool = False

    @property
    def stem(self) -> str:
        return file_stem(self.code.co_name)


@dataclass(frozen=True)
class _Resume:
    code: CodeType
    called_as: str
    takes_cells: bool


def stories_of(session: Session) -> List[List[Story]]:
    """For every user function that was transformed, its story followed by those of its resume functions."""
    codes = session.original_codes()
    stories = {id(code): _story(session, code) for code in codes}
    resumes = {key: _resumes(story, session) for key, story in stories.items()}
    resumed = {id(resume.code) for found in resumes.values() for resume in found}
    roots = [code for code in codes if id(code) not in resumed]
    return [list(_family(code, stories, resumes, session)) for code in roots]


def _family(
    root: CodeType, stories: Mapping[int, Story], resumes: Mapping[int, Sequence[_Resume]], session: Session
) -> Iterator[Story]:
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
        yield Story(resume.code, entries, resume.called_as, resume.takes_cells)
        todo = [*resumes.get(id(resume.code), ()), *todo]


def _story(session: Session, code: CodeType) -> Story:
    records = [record for record in session.records(TransformedCode) if record.original_code() is code]
    entries: List[Entry] = []
    for cached in compat.cache_entries(code):
        record = session.transformed_of(cached.code)
        if record is not None:
            entries.append(_entry(record, cached.code, cached.guard_manager))
    present = {entry.name for entry in entries}
    entries += [_entry(record, None, None) for record in records if _name(record) not in present]
    return Story(code, tuple(entries))


def _name(record: TransformedCode) -> str:
    return f"__transformed_code_{record.index}_for_{file_stem(record.function)}"


def _entry(record: TransformedCode, code: Optional[CodeType], manager: Optional[Any]) -> Entry:
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
    )


def _resumes(story: Story, session: Session) -> List[_Resume]:
    """The resume functions that the transformed code of ``story`` goes on in, in the order in which it names them."""
    found: Dict[str, _Resume] = {}
    for entry in story.entries:
        scope = global_scope(entry.manager)
        for name in names_in(entry.code) if entry.code is not None else ():
            code, takes_cells = _resume_code(scope.get(name)) if name.startswith(RESUME_PREFIX) else (None, False)
            if code is not None:
                found.setdefault(name, _Resume(code, session.stable.text(name), takes_cells))
    return list(found.values())


def _resume_code(value: Any) -> Tuple[Optional[CodeType], bool]:
    """The code object behind a ``__resume_at_*`` global, and whether that global makes the function from cells."""
    if isinstance(value, CodeType):
        return value, True
    code = getattr(value, "__code__", None)
    if not isinstance(code, CodeType):
        return None, False
    if "code" in code.co_freevars:
        # A factory of Dynamo's: it closes over the code object and takes the cells.
        inner = value.__closure__[code.co_freevars.index("code")].cell_contents
        if isinstance(inner, CodeType):
            return inner, True
    return code, False


def global_scope(manager: Optional[Any]) -> Mapping[str, Any]:
    """The user's globals as the guards of an entry see them; empty when the entry is gone."""
    scope = getattr(manager, "global_scope", None) or {}
    found: Mapping[str, Any] = scope.get("G") or {}
    return found


def names_in(code: CodeType) -> Iterator[str]:
    """The global and attribute names in a code object and in those nested in it."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from names_in(const)
