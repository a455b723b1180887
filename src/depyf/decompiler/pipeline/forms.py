"""The forms in which a code object is written, one after the other until one is proved."""

from __future__ import annotations

import enum
import os
from typing import List


class Form(enum.Enum):
    """The forms of the statements, most readable first."""

    WRITTEN = "written"
    """As its author wrote it, as far as the lines and columns of the instructions show."""
    READABLE = "readable"
    """With only the readability passes: columns may be those of another text."""
    JOINED = "joined"
    """With tests joined in expressions wherever that is possible, also where they look like nested statements."""
    COPIED = "copied"
    """With equal blocks as they are, since their lines may mislead as to which are copies made by the compiler."""
    PLAIN = "plain"
    """Without the readability passes."""
    DISPATCH = "dispatch"
    """All jumps through a state variable, where they have no statement."""


def forms() -> List[Form]:
    """Return the forms to try. ``DEPYF_REMOVE_TEMP=0`` in the environment omits the readability passes. In depyf 0.20
    that kept its temporary variables; here most of them are expressions from the start."""
    raw = os.environ.get("DEPYF_REMOVE_TEMP", "1") == "0"
    return [Form.PLAIN, Form.DISPATCH] if raw else list(Form)
