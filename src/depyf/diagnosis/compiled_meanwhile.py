"""Explain a recompilation that is not needed any more when Dynamo asks for its reason: an entry fits the call then.

A call that no entry fits waits for the lock under which Dynamo compiles. Another thread may have compiled an entry that
fits meanwhile; Dynamo compiles once more, and finds that all guards of that entry hold ("Unexpected recompilation").

A module of its own: the report and ``watch`` have the same words for it.
"""

from __future__ import annotations

from typing import Optional

from depyf.diagnosis.guard_explanations import GuardExplanation

_NO_FAILED_GUARD = "Unexpected recompilation:"
COMPILED_MEANWHILE = "compiled by another thread meanwhile"
"""The kind of the explanation where that has been observed."""

_FITS_BY_NOW = "an entry that fits by now"

ADVICE = (
    "call it before the threads start: once, if it is compiled with dynamic=True and sizes are all that differs, or "
    "once for each kind of input"
)


def fits_now(text: str) -> bool:
    """Return whether PyTorch's text for a cache entry says that no guard of it fails."""
    return text.startswith(_NO_FAILED_GUARD)


def is_of_fitting_entry(explained: GuardExplanation) -> bool:
    """Return whether an explanation comes from ``explain_meanwhile``: no guard of its entry fails."""
    return explained.kind in (COMPILED_MEANWHILE, _FITS_BY_NOW)


def explain_meanwhile(entry: Optional[str], thread: Optional[int], other: Optional[int]) -> GuardExplanation:
    """Return the explanation for an entry that fits now. ``thread`` is the identifier of the thread that compiles,
    ``other`` that of the thread that made the entry; None where it is not known."""
    which = f"the entry {entry}" if entry else "an entry"
    if thread is None or other is None:
        words = f"{which} fits this call by now: another thread may have compiled it while this call waited"
        return GuardExplanation("", words, advice=f"if threads share it: {ADVICE}", kind=_FITS_BY_NOW)
    if thread == other:
        words = f"{which} fits this call now, and did not when the call looked for an entry: a value has changed since"
        return GuardExplanation("", words, kind=_FITS_BY_NOW)
    words = f"another thread compiled {which}, which fits this call, while this call waited"
    return GuardExplanation("", words, advice=ADVICE, kind=COMPILED_MEANWHILE)
