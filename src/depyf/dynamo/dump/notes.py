"""The texts for the user about a dump as a whole. ``eager_fallbacks_<n>.txt`` is made here: what falls back to eager,
why, and since when.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Optional

from depyf.dynamo.capture.fallbacks import fallbacks
from depyf.dynamo.capture.records import Cause, FrameSkipped, NoteFile
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.missing import missing_text
from depyf.dynamo.hooks.safely import safely
from depyf.torch_trace.events import RECOMPILATION
from depyf.torch_trace.file_names import Note
from depyf.torch_trace.recompiles import reasons_of, without_facts

_SHOWN = 8
"""List at most this many cache entries if all failed."""

_HEAD = "What torch.compile was to compile and did not: it ran as plain Python, or the call raised the error."


def fallbacks_text(session: Session) -> str:
    """Return the text of the file: what costs speed first, then the frames in which there was nothing to compile. Empty
    if nothing falls back."""
    found = fallbacks(session)
    if not found:
        return ""
    lost = [frame for frame in found if frame.cause is not Cause.SKIPPED]
    skipped = [frame for frame in found if frame.cause is Cause.SKIPPED]
    lines = [_HEAD]
    for number, frame in enumerate(lost, 1):
        lines += ["", f"{number}. {_title(frame)}", *(f"   {line}".rstrip() for line in explanation(session, frame))]
    if skipped:
        lines += ["", "Frames that Dynamo skipped:", ""]
        lines += [f"   {_title(frame)}: {_first_line(frame.reason)}" for frame in skipped]
    return "\n".join([*lines, ""])


def explanation(session: Session, frame: FrameSkipped) -> List[str]:
    """Return why this frame runs as plain Python, and the consequences for its calls, in lines."""
    return list(_explanation(session, frame))


def _explanation(session: Session, frame: FrameSkipped) -> Iterator[str]:
    compile_id = f" (compile id {frame.compile_id})" if frame.compile_id else ""
    place = f", at {frame.place[0]}:{frame.place[1]}" if frame.place else ""
    yield f"{frame.cause.value[0].upper()}{frame.cause.value[1:]}{compile_id}{place}."
    if frame.cause is Cause.LIMIT:
        name, value = frame.limit or ("recompile_limit", None)
        yield f"torch._dynamo.config.{name} is {value}. Calls that none of the cache entries is valid for run as plain"
        yield "Python from now on, without a message. What failed last, by cache entry:"
        reasons = _recompile_reasons(session, frame.compile_id)
        yield from (f"    {' '.join(_first_line(session.stable.text(reason)).split())}" for reason in reasons[:_SHOWN])
        if len(reasons) > _SHOWN:
            yield f"    ... and {len(reasons) - _SHOWN} more"
    elif frame.cause is Cause.RAISED:
        yield "The call that was to be compiled raised it."
    else:
        yield "All calls run as plain Python; functions that it calls may still be compiled."
    if len(frame.stack) > 1:
        yield "The calls that led there:"
        yield from (f"    {path}:{line}, in {function}" for path, line, function in frame.stack)
    yield from frame.reason.splitlines()


def _recompile_reasons(session: Session, compile_id: Optional[str]) -> List[str]:
    """Return which guards of which cache entries failed before this compilation, the most recent entry first."""
    if compile_id is None:
        return []
    return [without_facts(each) for event in session.events(RECOMPILATION, compile_id) for each in reasons_of(event)]


def _title(frame: FrameSkipped) -> str:
    return f"{frame.qualified_name} ({frame.filename}:{frame.first_line})"


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]


Notes = Dict[Note, Callable[[Session], str]]
"""What makes the text of a note; an empty text is not written."""

SO_FAR: Notes = {"eager_fallbacks": fallbacks_text}
"""Written whenever files are, about what was compiled since the last time."""

AT_THE_END: Notes = {"missing_stages": missing_text}
"""Written once, about the whole session."""


def write_notes(session: Session, about: Session, notes: Notes) -> None:
    """Write the texts about the records of ``about`` to the dump of ``session``."""
    for note, text_of in notes.items():
        path = safely(f"writing {note} files")(_written)(about, note, text_of)
        if path is not None:
            session.add(NoteFile(None, path))


def _written(about: Session, note: Note, text_of: Callable[[Session], str]) -> Optional[str]:
    text = about.message(text_of(about))
    return about.directory.write_note(note, text) if text else None
