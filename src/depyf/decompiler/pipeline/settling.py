"""Insert ``del`` where a temporary would keep a value alive longer than the original does."""

from __future__ import annotations

from typing import Set

from depyf.decompiler.bytecode.lines import line_of_offset
from depyf.decompiler.normal.ops import byte_offset
from depyf.decompiler.pipeline.attempts import Attempt, Attempts
from depyf.decompiler.pipeline.forms import Form
from depyf.decompiler.source.passes.counting import is_temporary
from depyf.decompiler.source.passes.placed_release import places_of

_ROUNDS = 20
"""The limit on rounds of inserting ``del``; each one finds at least one location."""


def settled(attempts: Attempts) -> Attempt:
    """Return an attempt in which no temporary keeps a value alive for too long, if ``del`` can achieve that. Otherwise
    return the first one, which has no other fault: a wrong ``del`` is worse."""
    attempts.thorough, attempts.places, attempts.emptied = False, {}, False
    attempts.released, attempts.released_inside = set(), set()
    # 1. ``del`` after the last use. For ``h(g()); k()`` the result of g() is on the stack, and released when h returns;
    # with a temporary that needs a ``del``:
    #     t = g(); h(t); del t; k()
    first = _first(attempts)
    attempt = _without_overdue(attempts, first)
    if not attempt.comparison.proved and any(part.overdue for part in first.comparison.walk()):
        # 2. Again, splitting more expressions: a value may have to die within one, or be left by a suppressed
        # exception.
        attempts.released, attempts.released_inside, attempts.thorough = set(), set(), True
        attempt = _without_overdue(attempts, first)
    if not attempt.comparison.proved:
        # 3. A function whose nested function is not proved is not compared to its end: settle the nested ones alone.
        first = _settled_inside(attempts, first)
    if not attempt.comparison.proved and first.comparison.overdue:
        # 4. ``del`` exactly where the original releases the value, which the failed proof names.
        attempt = _settled_in_place(attempts, first)
    if not attempt.comparison.proved and first.comparison.overdue:
        # 5. Assign None instead: the variable may be unbound there, where ``del`` raises.
        attempts.places, attempts.emptied = {}, True
        attempt = _settled_in_place(attempts, first)
    return attempt if attempt.comparison.proved else first


def _first(attempts: Attempts) -> Attempt:
    """Return the attempt without ``del``; of code that a tool wrote, that with the ``del`` that will most likely be
    needed, if it is proved."""
    attempts.foreseeing = attempts.written_by_tool and attempts.form is Form.WRITTEN
    try:
        attempt = attempts.attempt()
        if not attempts.released:
            return attempt
        attempt = _without_overdue(attempts, attempt)
    finally:
        attempts.foreseeing = False
    if attempt.comparison.proved:
        return attempt
    attempts.released, attempts.released_inside = set(), set()
    return attempts.attempt()


def _without_overdue(attempts: Attempts, attempt: Attempt) -> Attempt:
    """Return ``attempt`` with each overdue temporary deleted after its last use, as far as possible."""
    while not attempt.comparison.proved:
        overdue = {_in_text(name) for name, _ in attempt.comparison.overdue} - attempts.released
        inside = _overdue_inside(attempt) - attempts.released_inside
        if not (overdue or inside):
            break
        attempts.released |= overdue
        attempts.released_inside |= inside
        attempt = attempts.attempt()
    return attempt


def _settled_inside(attempts: Attempts, first: Attempt) -> Attempt:
    """Return ``first`` with the overdue temporaries of the functions inside deleted, if these are proved so: what the
    function itself keeps alive is compared only then."""
    attempts.released, attempts.thorough, attempt = set(), False, first
    attempts.released_inside = set()
    while _overdue_inside(attempt) - attempts.released_inside:
        attempts.released_inside |= _overdue_inside(attempt)
        attempt = attempts.attempt()
    if all(part is attempt.comparison for part in attempt.comparison.culprits()):
        return attempt
    attempts.released_inside = set()
    return first


def _overdue_inside(attempt: Attempt) -> Set[str]:
    """Return the overdue temporaries of the functions inside."""
    whole = attempt.comparison
    return {_in_text(name) for part in whole.walk() if part is not whole for name, _ in part.overdue}


def _settled_in_place(attempts: Attempts, first: Attempt) -> Attempt:
    """Return ``first`` with each temporary deleted, or emptied, where the original releases its value, if that is
    proved."""
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
    """Return the temporary for ``name`` in the bytecode, where the compiler mangles names that start with "__" in
    classes."""
    start = name.find("__temp_")
    return name[start:] if start > 0 and is_temporary(name[start:]) else name
