"""Explain a failed guard in terms of its function: what its caller can do, and which keyword is new."""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Mapping, Optional, Set

from depyf.diagnosis.changed_keys import CHANGED_KEYS, keys_of, keys_written, with_changed_keys
from depyf.diagnosis.guard_advice import GuardedFrame
from depyf.diagnosis.guard_explanations import GuardExplanation, in_frame
from depyf.dynamo.entries.hints import RESUMED
from depyf.dynamo.guards.entry_guards import EntryGuards
from depyf.dynamo.hooks.torch_types import Guards


def guarded_frame_of(code: Optional[CodeType]) -> GuardedFrame:
    """Return whether a code object is that of a resume function, and its starred parameters."""
    if code is None:
        return GuardedFrame()
    names = iter(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    positional = next(names, "") if code.co_flags & inspect.CO_VARARGS else ""
    keywords = next(names, "") if code.co_flags & inspect.CO_VARKEYWORDS else ""
    return GuardedFrame(code.co_name.startswith(RESUMED), positional, keywords)


def in_call(
    words: GuardExplanation, frame: GuardedFrame, manager: Guards, values: Mapping[str, object]
) -> GuardExplanation:
    """Return the explanation of a guard that fails in a call with these ``values``; ``manager`` has the entry's
    guards.
    """
    words = in_frame(words, frame)
    if words.cause not in CHANGED_KEYS:
        return words
    value = values.get(words.subject) if words.subject else None
    now = {repr(key) for key in value} if isinstance(value, dict) else keys_written(words.now)
    if now is None:
        return words
    before = keys_written(words.before)  # PyTorch before 2.4 guards the keys themselves
    return with_changed_keys(words, _keys_guarded(words.subject, manager) if before is None else before, now, frame)


def _keys_guarded(subject: str, manager: Guards) -> Set[str]:
    guards = EntryGuards.of(manager, "guard")
    return keys_of(subject, (line.source for line in guards.lines))
