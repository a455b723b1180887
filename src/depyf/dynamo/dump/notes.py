"""The texts for the user about a dump as a whole: the tables of what makes each, and what writes them."""

from __future__ import annotations

from typing import Callable, Dict, Optional

from depyf.dynamo.capture.records import NoteFile
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.fallbacks_text import fallbacks_text
from depyf.dynamo.dump.missing import missing_text
from depyf.dynamo.hooks.safely import safely
from depyf.file_names import Note

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
    text = text_of(about)
    return about.directory.write_note(note, text) if text else None
