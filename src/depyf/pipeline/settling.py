"""Attempts in which no temporary keeps a value alive for longer than the original does: ``del`` where it is needed."""

from __future__ import annotations

from depyf.bytecode.instructions import line_of_offset
from depyf.normal.ops import byte_offset
from depyf.pipeline.attempts import Attempt, Attempts
from depyf.source.passes.counting import is_temporary
from depyf.source.passes.placed_release import places_of

_ROUNDS = 20
"""How often places for ``del`` are looked for; each round finds one of them at least."""


def settled(attempts: Attempts) -> Attempt:
    """An attempt in which no temporary keeps a value alive for too long, if ``del`` can do that.

    Otherwise the one in which some do: nothing else is known against it. ``del`` in the wrong place is worse.
    """
    attempts.released = set()
    attempts.thorough, attempts.places = False, {}
    first = attempts.attempt()
    attempt = _without_overdue(attempts, first)
    if not attempt.comparison.proved and first.comparison.overdue:
        attempts.released, attempts.thorough = set(), True
        attempt = _without_overdue(attempts, first)
    if not attempt.comparison.proved and first.comparison.overdue:
        attempt = _settled_in_place(attempts, first)
    return attempt if attempt.comparison.proved else first


def _without_overdue(attempts: Attempts, attempt: Attempt) -> Attempt:
    """``attempt`` with each temporary deleted behind its last use that is held too long, as far as that goes."""
    while not attempt.comparison.proved:
        overdue = {_in_text(name) for part in attempt.comparison.walk() for name, _ in part.overdue} - attempts.released
        if not overdue:
            break
        attempts.released |= overdue
        attempt = attempts.attempt()
    return attempt


def _settled_in_place(attempts: Attempts, first: Attempt) -> Attempt:
    """``first`` with each temporary deleted where the original lets go of its value, if that is a proof."""
    attempts.released, attempt = set(), first
    for _ in range(_ROUNDS):
        lines = line_of_offset(attempt.candidate)
        overdue = [
            (_in_text(name), lines[offset])
            for name, offset in ((name, byte_offset(offset)) for name, offset in attempt.comparison.overdue)
            if offset in lines
        ]
        places = places_of(overdue, attempt.source.tree, attempt.numbers, attempts.places)
        if places is None:
            break
        attempts.places = places
        attempt = attempts.attempt()
        if attempt.comparison.proved:
            break
    return attempt


def _in_text(name: str) -> str:
    """The temporary that ``name`` is in the bytecode: inside of classes the compiler mangles what begins with "__"."""
    start = name.find("__temp_")
    return name[start:] if start > 0 and is_temporary(name[start:]) else name
