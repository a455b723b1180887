"""Which of several entries shows the cause of a recompilation."""

from __future__ import annotations

from typing import Set, Tuple

from depyf.base.quick_dataclass import replace
from depyf.diagnosis.compiled_meanwhile import explain_meanwhile
from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_explanations import GuardExplanation, explain
from depyf.report.analysis.causes import nearest, what_is_new


def failed(kind: GuardKind, source: str, before: str, now: str, differences: int) -> Tuple[str, GuardExplanation]:
    """Return the guard of an entry from which the call differs in so many guards."""
    detail = "1" if kind is GuardKind.SIZE else source
    return source, explain(Guard(kind, source, before, now, detail, differences=differences))


def test_an_entry_of_a_new_value_comes_before_one_of_a_known_value() -> None:
    seen: Set[Tuple[str, str]] = set()
    first = failed(GuardKind.SIZE, "x", "5", "1", 3)
    assert nearest(*what_is_new([first], seen)) == [first]
    # x had size 1 when the second entry was compiled: the third one is not due to it.
    newer = failed(GuardKind.SIZE, "k", "5", "6", 4)
    assert nearest(*what_is_new([first, newer], seen)) == [newer, first]
    nearer = failed(GuardKind.SIZE, "v", "5", "6", 1)
    assert nearest(*what_is_new([first, newer, nearer], seen)) == [nearer, first, newer]


def test_another_object_is_no_cause_where_the_same_object_has_an_entry() -> None:
    other = failed(GuardKind.IDENTITY, "self", "1", "2", 1)
    known = failed(GuardKind.SIZE, "x", "5", "1", 3)
    assert nearest([other], [known]) == [known, other]
    unknown = (known[0], replace(known[1], guard=replace(known[1].guard, differences=0)))
    assert nearest([other], [unknown]) == [other, unknown]


def test_an_entry_that_was_not_searched_comes_after_those_that_were() -> None:
    unknown = failed(GuardKind.SIZE, "x", "5", "1", 0)
    far, near = (failed(GuardKind.SIZE, source, "5", "6", number) for source, number in (("k", 3), ("v", 1)))
    assert nearest([unknown, far, near]) == [near, far, unknown]


def test_an_entry_that_another_thread_compiled_meanwhile_comes_first() -> None:
    near, unknown = (failed(GuardKind.SIZE, source, "5", "6", number) for source, number in (("k", 1), ("v", 0)))
    own, guessed = (("0/1", explain_meanwhile("0/1", *threads)) for threads in ((1, 1), (None, None)))
    meanwhile = "0/2", explain_meanwhile("0/2", 1, 2)
    assert nearest([own, near, unknown, guessed, meanwhile]) == [meanwhile, near, own, unknown, guessed]
