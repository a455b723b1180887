"""Find which keys of a dict were added or removed, if a guard only reports another number of keys."""

from __future__ import annotations

import ast
from typing import Iterable, List, Optional, Set

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import replace
from depyf.decompiler.syntax import parse
from depyf.diagnosis.guard_advice import GuardCause, GuardedFrame
from depyf.diagnosis.guard_explanations import GuardExplanation
from depyf.diagnosis.guard_sources import key_read

CHANGED_KEYS = (GuardCause.KEYS, GuardCause.LENGTH)
"""The subjects of a guard on a number of keys: torch has the same text for the length of a list."""


def keys_of(subject: str, sources: Iterable[str]) -> Set[str]:
    """Return the keys of the dict ``subject`` that guards with these sources read, as they are written."""
    return {key for key in (key_read(subject, source) for source in sources) if key is not None}


def keys_written(text: Optional[str]) -> Optional[Set[str]]:
    """Return all keys that a set or a list of them as text has, as they are written; None for another text."""
    try:
        keys = set() if text == "set()" else ast.literal_eval(parse(text or "", "eval"))
    except synchronous(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return {repr(key) for key in keys} if isinstance(keys, (set, list)) else None


def with_changed_keys(
    words: GuardExplanation, before: Set[str], now: Optional[Set[str]], frame: GuardedFrame
) -> GuardExplanation:
    """Return the explanation with the keys that were added and removed; for keyword arguments, in these terms.

    ``before`` are the keys that guards of the entry read, ``now`` those of the call, None where they are not known. A
    key that no guard reads may have been there before: added keys are reported only if guards read all keys.
    """
    return _with_keys(words, before, now or set(), frame, knows_now=now is not None)


def with_keys_read(words: GuardExplanation, before: Set[str], now: Set[str], frame: GuardedFrame) -> GuardExplanation:
    """Return the same if ``now`` are the keys that guards of the next entry read: no key is known to be removed."""
    return _with_keys(words, before, now, frame, knows_now=False)


def _with_keys(
    words: GuardExplanation, before: Set[str], now: Set[str], frame: GuardedFrame, *, knows_now: bool
) -> GuardExplanation:
    is_keywords = bool(frame.keywords) and words.subject == frame.keywords
    if words.cause not in CHANGED_KEYS or not (is_keywords or words.cause is GuardCause.KEYS):
        return words
    new = sorted(now - before) if _number(words.before) == len(before) else []
    gone = sorted(before - now) if knows_now else []
    if is_keywords:
        text = _of_keywords([_plain(each) for each in new], [_plain(each) for each in gone], words.subject)
        return replace(words, words=text)
    parts = [f"has {', '.join(new)}, which it lacked"] if new else []
    parts += [f"lacks {', '.join(gone)}, which it had"] if gone else []
    return replace(words, words=f"{words.subject} {' and '.join(parts)} when this was compiled") if parts else words


def _of_keywords(new: List[str], gone: List[str], name: str) -> str:
    if not new and not gone:
        return f"the keyword arguments (**{name}) differ from those that it was compiled for"
    parts = [f"is called with {', '.join(new)}"] if new else []
    parts += [f"{'' if new else 'is called '}without {', '.join(gone)}"] if gone else []
    return f"it {' and '.join(parts)} (**{name}), and was compiled for a call {'without' if new else 'with'}" + (
        "" if not (new and gone) else f" {', '.join(new)} and with {', '.join(gone)}"
    )


def _number(before: Optional[str]) -> Optional[int]:
    """Return the number of keys that the entry was compiled for."""
    written = keys_written(before)
    if written is not None:
        return len(written)
    if before == "empty":
        return 0
    return int(before) if before is not None and before.isdecimal() and len(before) < 19 else None


def _plain(key: str) -> str:
    return key.strip("'\"")
