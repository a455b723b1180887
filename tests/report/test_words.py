"""Guards that failed, in words."""

from __future__ import annotations

import pytest

from depyf.report.words import value_now, words_of

SAID = [
    ("tensor 'x' dtype mismatch. expected Float, actual Double", "the dtype of x was float32, now float64"),
    ("tensor 'x' size mismatch at index 0. expected 4, actual 6", "dimension 0 of x was 4, now 6"),
    ("tensor 'x' rank mismatch. expected 2, actual 3", "the number of dimensions of x was 2, now 3"),
    (
        "tensor 'x' requires_grad mismatch. expected requires_grad=0",
        "x did not require gradients, now it does",
    ),
    ("len(L['parts']) == 1", "the length of parts was 1 and is another value now"),
    ("L['self'].factor == 0.5", "self.factor was 0.5 and is another value now"),
    ('Duplicate tensors found: ["x", "parts[0]"]', "x, parts[0] are one tensor now, and were not when it was compiled"),
    ("___check_obj_id(L['f'], 140235581518656)", "f is another object than the one that was compiled for"),
    (
        "___check_type_id(L['s'], 94196053635088), type=<class '__main__.Scaled'>",
        "s was a Scaled and is of another class now",
    ),
    ("GLOBAL_STATE changed: grad_mode ", "global state changed: grad_mode"),
    ("L['x'] is None", "x was None and is another value now"),
    ("2 <= L['x'].size()[0] <= 512", "dimension 0 of x left the range that was compiled for: 2 <= x.size()[0] <= 512"),
    ("some_new_guard(x)", "the guard `some_new_guard(x)` no longer held"),
]


@pytest.mark.parametrize(("guard", "words"), SAID, ids=[guard for guard, _ in SAID])
def test_a_guard_is_told_in_words(guard: str, words: str) -> None:
    assert words_of(guard).text == words


def test_the_value_of_the_failing_call_is_told_where_the_next_compilation_knows_it() -> None:
    now = value_now("x.n == 1", {"L['y'].n": "3", "L['x'].n": "2"})
    words = words_of("x.n == 1", now)
    assert (words.text, words.before, words.now) == ("x.n was 1, now 2", "1", "2")
