"""Values on the stack of a resume function have the names that the program gives them."""

from __future__ import annotations

from typing import List

import pytest

from depyf.report.analysis.stack_values import with_stack_values
from depyf.report.model.run import Artifact, Call, Compilation, FailedGuard, Recompile

RESUMED = (
    "def __transformed_code_1(__nested_resume_fns, __nested_frame_values, ___stack0, ___stack1, x, t):\n    return x\n"
)


def words(*callers: str, resumed: str = RESUMED) -> str:
    compilations: List[Compilation] = [Compilation("1/0", 1, transformed="resumed")]
    artifacts = [Artifact("resumed", "transformed", "resumed", "1/0", text=resumed)]
    for at, text in enumerate(callers):
        calls = (Call(function=1, line=1 + text[: text.index("__resume_at")].count("\n")),)
        compilations.append(Compilation(f"0/{at}", 0, calls=calls, transformed=f"caller{at}"))
        artifacts.append(Artifact(f"caller{at}", "transformed", "caller", f"0/{at}", text=text))
    failed = FailedGuard("1/0", "check(L['___stack0'])", "___stack0 is not ___stack1", checked="___stack0")
    (recompile,) = with_stack_values((Recompile("1/1", 1, (failed,), "See ___stack0."),), compilations, artifacts)
    (found,) = recompile.failed
    assert found.text == failed.text
    assert (found.checked, recompile.advice) == (found.words.split(" ")[0], f"See {found.words.split(' ')[0]}.")
    return found.words


def caller(body: str, arguments: str = "append, h, x, t") -> str:
    return f"# a file\ndef __transformed_code_0(x, t):\n{body}    return __resume_at_156_3([], [], {arguments})\n"


def test_a_method_is_called_as_in_the_program() -> None:
    text = caller("    (out,) = __compiled_fn_2(x)\n    append = t.seen.append\n    h = out.item\n")
    assert words(text) == "t.seen.append is not ___stack1"
    assert words(text, text) == "t.seen.append is not ___stack1"
    assert words(caller("    seen = t.seen\n    append = seen.append\n")) == "t.seen.append is not ___stack1"


def test_a_method_of_a_global_is_called_as_in_the_program() -> None:
    text = caller("    (out,) = __compiled_fn_2(x)\n    append = log.lines.append\n    h = out.item\n")
    assert words(text) == "log.lines.append is not ___stack1"


@pytest.mark.parametrize(
    "body",
    [
        "    append = g(t)\n",  # a result has no name
        "    append = t\n    append = t.b\n",  # bound twice
        "    append = __import_m.f\n",  # not of the function's variables
        "    append = append.b\n",
        "    (out,) = __compiled_fn_2(x)\n    append = out.item\n",  # a value of a graph
        "    for log in t: pass\n    append = log.append\n",  # a variable of its own
        "    x = t.a\n    append = x.b\n",  # a variable that was bound again
    ],
)
def test_what_has_no_name_in_the_program_keeps_that_of_dynamo(body: str) -> None:
    assert words(caller(body)) == "___stack0 is not ___stack1"


def test_callers_that_differ_or_can_not_be_read_give_no_name() -> None:
    one, other = caller("    append = t.a.append\n"), caller("    append = t.b.append\n")
    assert words(one, other) == "___stack0 is not ___stack1"
    assert words(caller("    append = t.a.append\n", "append, x")) == "___stack0 is not ___stack1"
    assert words(caller("    append = t.a.append\n", "*append")) == "___stack0 is not ___stack1"
    assert words("__resume_at( is no Python") == "___stack0 is not ___stack1"
    assert words(one, resumed="nothing = 1\n") == "___stack0 is not ___stack1"
