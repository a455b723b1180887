"""What is worth acting on: each thing once."""

from __future__ import annotations

from depyf.report.findings import findings_of
from depyf.report.model import Compilation, FailedGuard, Fallback, Function, GraphBreak, Phase, Recompile, Run, Source

FUNCTIONS = (Function("f", "f", 0, 1, 9), Function("torch_dynamo_resume_in_f_at_4", "f", 0, 1, 9, 0, 4))


def run(**fields: object) -> Run:
    ids = ("0/0", "0/1", "1/0", "1/1")
    compilations = tuple(Compilation(each, int(each[0])) for each in ids)
    return Run(sources=(Source("/m.py", ""),), functions=FUNCTIONS, compilations=compilations, **fields)  # type: ignore


def recompile(compile_id: str, function: int) -> Recompile:
    return Recompile(
        compile_id, function, (FailedGuard("x", "n == 1", "n is 2, and was compiled for 1"),), place=(0, 4)
    )


def titles(of: Run) -> list:  # type: ignore[type-arg]
    return [each.title for each in findings_of(of)]


def test_recompiles_of_what_goes_on_after_a_break_are_said_to_be_that() -> None:
    own, resumed = recompile("0/1", 0), recompile("1/1", 1)
    assert titles(run(recompiles=(own,))) == ["f was recompiled once"]
    assert titles(run(recompiles=(resumed,))) == ["f was recompiled once, where it goes on after a graph break"]
    assert titles(run(recompiles=(own, resumed))) == [
        "f was recompiled 2 times, 1 of them where it goes on after a graph break"
    ]
    assert findings_of(run(recompiles=(own,)))[0].place == (0, 4)


def test_a_break_that_leaves_the_frame_to_python_is_told_as_that_only() -> None:
    broken = GraphBreak("0/0", (0, 3), "Data-dependent branching")
    lost = Fallback(0, "0/0", "graph break that Dynamo can't go on from", "in a loop", (0, 3))
    assert titles(run(breaks=(broken,))) == ["Graph break in f: Data-dependent branching"]
    assert titles(run(breaks=(broken,), fallbacks=(lost,))) == [f"f runs as plain Python: {lost.cause}"]
    elsewhere = GraphBreak("0/0", (0, 5), "print")
    assert len(titles(run(breaks=(broken, elsewhere), fallbacks=(lost,)))) == 2


def test_functions_that_resume_each_other_in_a_circle_have_some_root() -> None:
    circle = (Function("f", "f", 0, 1, 9, 1), Function("g", "g", 0, 1, 9, 0))
    assert Run(functions=circle).root(0) in (0, 1)


def test_of_phases_that_wait_for_each_other_only_the_slowest_is_told() -> None:
    compiled = (Compilation("0/0", 0, seconds=20.0),)
    phases = (Phase("0/0", "compile_file", 0.0, 14.7), Phase("0/0", "async_compile.wait", 0.0, 14.4))
    slow = findings_of(Run(functions=FUNCTIONS, compilations=compiled, phases=phases))
    assert [each.title for each in slow] == ["Most of the compile time is compile_file"]
    assert "TORCHINDUCTOR_CACHE_DIR" in slow[0].text
    assert not findings_of(Run(functions=FUNCTIONS, compilations=compiled))
