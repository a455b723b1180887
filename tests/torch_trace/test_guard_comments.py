"""A guard is cut where its comment starts, and nowhere else."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest

from depyf.torch_trace.guard_comments import find_outside_strings, frame_of, split_comment, users_line
from depyf.torch_trace.recompiles import failed_guard

LINE = "# return x  # tests/a.py:242 in f"


@pytest.mark.parametrize(
    "code",
    [
        "L['mode'] == 'a  # b'",
        "L['mode'] == 'it\\'s \\\\ \"quoted\"\\n  # no comment'",
        "tensor 'L['x']' size mismatch at index 1. expected 4, actual 5",
        "expected type of 'L['x']' to be a tensor type, ' but found <class 'NoneType'>",
        "'int' object has no attribute 'size'",
        "___check_type_id(L['n'], 14036), type=<class 'int'>",
        "",
    ],
)
def test_the_code_of_a_guard_ends_where_its_comment_begins(code: str) -> None:
    assert split_comment(code) == (code, "")
    assert split_comment(f"{code}    {LINE}") == (code, LINE)
    assert failed_guard(f"0/1: {code}    {LINE}\nUser stack trace:\n").text == code


@pytest.mark.parametrize(
    ("comment", "code", "frame"),
    [
        (LINE, "return x", ("tests/a.py", 242, "f")),
        ("# y = a[1:2 in b]  # my file.py:3 in f (HINT: why)", "y = a[1:2 in b]", ("my file.py", 3, "f")),
        ("#   # <string>:3 in f", "", ("<string>", 3, "f")),
        ("# _dynamo/output_graph.py:371 in init_ambient_guards", None, None),
        ("# return x", None, None),
        ("", None, None),
    ],
)
def test_the_users_line_of_a_comment(comment: str, code: Optional[str], frame: Optional[Tuple[str, int, str]]) -> None:
    assert users_line(comment) == (None if code is None else (code, frame))


def test_a_comment_may_name_a_frame_of_pytorchs_own_alone() -> None:
    comment = "# _dynamo/output_graph.py:371 in init_ambient_guards"
    assert frame_of(comment) == ("_dynamo/output_graph.py", 371, "init_ambient_guards")
    assert frame_of(LINE) == ("tests/a.py", 242, "f")
    assert frame_of("# return x") is None


@pytest.mark.parametrize(
    ("text", "wanted", "at"),
    [("'a' == b", " == ", 3), ("L['a == b'] == 2", " == ", 11), ("'a == b'", " == ", -1), ("it's == b", " == ", None)],
)
def test_what_is_in_strings_is_not_found(text: str, wanted: str, at: Optional[int]) -> None:
    assert find_outside_strings(text, wanted) == at
