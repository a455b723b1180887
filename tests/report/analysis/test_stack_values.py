"""Values on the stack of a resume function have the names that the program gives them."""

from __future__ import annotations

from typing import List

import pytest

from depyf.diagnosis.guard_sources import as_written
from depyf.report.analysis.stack_values import with_stack_values
from depyf.report.model.run import Artifact, Call, Compilation, FailedEntryGuard, Recompile

ONE, OTHER = (as_written(f"L['___stack{number}']") for number in (0, 1))
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
    failed = FailedEntryGuard("1/0", "check(L['___stack0'])", f"{ONE} is not {OTHER}", checked=ONE)
    (recompile,) = with_stack_values((Recompile("1/1", 1, (failed,), f"See {ONE}."),), compilations, artifacts)
    (found,) = recompile.failed
    name = found.words.partition(" is not ")[0]
    assert found.text == failed.text
    assert (found.checked, recompile.advice) == (name, f"See {name}.")
    return found.words


def caller(body: str, arguments: str = "append, h, x, t") -> str:
    return f"# a file\ndef __transformed_code_0(x, t):\n{body}    return __resume_at_156_3([], [], {arguments})\n"


def test_a_method_is_called_as_in_the_program() -> None:
    text = caller("    (out,) = __compiled_fn_2(x)\n    append = t.seen.append\n    h = out.item\n")
    assert words(text) == f"t.seen.append is not {OTHER}"
    assert words(text, text) == f"t.seen.append is not {OTHER}"
    assert words(caller("    seen = t.seen\n    append = seen.append\n")) == f"t.seen.append is not {OTHER}"


def test_a_method_of_a_global_is_called_as_in_the_program() -> None:
    text = caller("    (out,) = __compiled_fn_2(x)\n    append = log.lines.append\n    h = out.item\n")
    assert words(text) == f"log.lines.append is not {OTHER}"


@pytest.mark.parametrize(
    "body",
    [
        "    append = g(t).b\n",  # of a result
        "    append = t\n    append = t.b\n",  # bound twice
        "    append = __import_m.f\n",  # not of the function's variables
        "    append = append.b\n",
        "    (out,) = __compiled_fn_2(x)\n    append = out.item\n",  # a value of a graph
        "    for log in t: pass\n    append = log.append\n",  # a variable of its own
        "    x = t.a\n    append = x.b\n",  # a variable that was bound again
    ],
)
def test_what_has_no_name_in_the_program_is_a_value_of_the_stack(body: str) -> None:
    assert words(caller(body)) == f"{ONE} is not {OTHER}"


def test_callers_that_differ_or_can_not_be_read_give_no_name() -> None:
    one, other = caller("    append = t.a.append\n"), caller("    append = t.b.append\n")
    assert words(one, other) == f"{ONE} is not {OTHER}"
    assert words(caller("    append = t.a.append\n", "append, x")) == f"{ONE} is not {OTHER}"
    assert words(caller("    append = t.a.append\n", "*append")) == f"{ONE} is not {OTHER}"
    assert words("__resume_at( is no Python") == f"{ONE} is not {OTHER}"
    assert words(one, resumed="nothing = 1\n") == f"{ONE} is not {OTHER}"


def test_a_result_is_called_after_what_was_called() -> None:
    assert words(caller("    append = g(t)\n")) == f"the result of g() is not {OTHER}"
    item = "    append = __compiled_fn_2(x)[0].item()\n"
    assert words(caller(item)) == f"the result of .item() is not {OTHER}"
    kept = "    (out,) = __compiled_fn_2(x)\n    item = out.item\n    append = item()\n    del item\n"
    assert words(caller(kept)) == f"the result of .item() is not {OTHER}"
    assert words(caller("    append = random.choice(t)\n")) == f"the result of random.choice() is not {OTHER}"
    assert words(caller("    append = t.log.pop()\n")) == f"the result of t.log.pop() is not {OTHER}"
    two = caller(item + item.replace("append", "h"))
    assert words(two) == f"{ONE} is not {OTHER}"  # two of one name are told apart


def test_a_value_of_the_stack_says_what_it_is() -> None:
    assert as_written("___stack12") == "stack value 12 at the graph break"
    assert as_written("L['___stack0'].n[1] == 3") == "(stack value 0 at the graph break).n[1] == 3"
    code = "    append = log.lines.append\n    h = g(x)\n"
    failed = FailedEntryGuard("1/0", "check", f"({ONE}).__self__ and ({OTHER}).n")
    compilations = [
        Compilation("1/0", 1, transformed="resumed"),
        Compilation("0/0", 0, calls=(Call(function=1, line=5),), transformed="caller"),
    ]
    texts = {"resumed": RESUMED, "caller": caller(code)}
    artifacts = [Artifact(each, "transformed", each, text=text) for each, text in texts.items()]
    (found,) = with_stack_values((Recompile("1/1", 1, (failed,)),), compilations, artifacts)
    assert found.failed[0].words == "log.lines.append.__self__ and (the result of g()).n"
