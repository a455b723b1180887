"""What is worth acting on: each thing once."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from depyf.report.analysis.findings import findings_of
from depyf.report.analysis.sources import is_library
from depyf.report.model import headline
from depyf.report.model.run import (
    Compilation,
    FailedGuard,
    Fallback,
    Function,
    GraphBreak,
    Phase,
    Recompile,
    Run,
    Source,
)

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
    assert titles(run(recompiles=(resumed,))) == ["f was recompiled once, where it resumes after a graph break"]
    assert titles(run(recompiles=(own, resumed))) == [
        "f was recompiled 2 times, 1 of them where it resumes after a graph break"
    ]
    assert findings_of(run(recompiles=(own,)))[0].place == (0, 4)


def test_a_break_that_leaves_the_frame_to_python_is_reported_as_that_only() -> None:
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
    assert [each.title for each in slow] == ["Most of the compile time is the C++ compiler"]
    assert "TORCHINDUCTOR_CACHE_DIR" in slow[0].text
    assert not findings_of(Run(functions=FUNCTIONS, compilations=compiled))


def test_the_headline_says_what_takes_the_time_as_far_as_it_is_known() -> None:
    phases = (Phase("0/0", "compile_file", 0.0, 9.0), Phase("0/0", "dynamo", 0.0, 1.0))

    def said(seconds: Optional[float]) -> str:
        of = (Compilation("0/0", 0, seconds=seconds),)
        return headline.headline(Run(functions=FUNCTIONS, compilations=of, phases=phases)).rpartition(", ")[2]

    assert said(12.0) == "75 % of the compile time in the C++ compiler"
    assert said(20.0) == "without graph breaks or recompilations"  # of which 9 s are not the most
    for unknown in (None, 0.0, 6.0):  # kernels are compiled side by side: more than the time of the compilation
        assert said(unknown) == "most of the compile time in the C++ compiler"


LIBRARY = Source("/site-packages/lib.py", "", library=True)


def test_each_kind_of_graph_break_is_a_finding_with_its_own_advice() -> None:
    breaks = (
        GraphBreak("0/0", (0, 3), "print", advice="Print after it."),
        GraphBreak("0/1", (0, 3), "print", advice="Print after it."),
        GraphBreak("0/0", (0, 5), "print", advice="Print after it."),
        GraphBreak("0/0", (0, 7), "item()", advice="Keep it a tensor."),
    )
    found = {each.title: each.text for each in findings_of(run(breaks=breaks))}
    assert found == {
        "2 graph breaks in f: print": "Print after it. Also at m.py:5.",
        "Graph break in f: item()": "Keep it a tensor.",
    }


def test_each_cause_of_recompilations_is_a_finding_with_its_own_advice() -> None:
    size, number = FailedGuard("0/0", "s", "x has size 3"), FailedGuard("0/0", "n", "n is 2")
    resumed = FailedGuard("1/0", "s", "h has size 3")
    recompiles = (
        Recompile("1/1", 1, (resumed,), "Mark the arguments.", (0, 5), "size"),
        Recompile("0/1", 0, (size,), "Mark x.", (0, 4), "size"),
        Recompile("0/2", 0, (number,), "Pass a tensor.", (0, 6), "number"),
    )
    found = {each.title: each.text for each in findings_of(run(recompiles=recompiles))}
    assert found == {
        "f was recompiled 2 times, 1 of them where it resumes after a graph break": "Because x has size 3; h has size "
        "3. "
        "Mark x.",
        "f was recompiled once": "Because n is 2. Pass a tensor.",
    }


def test_the_programs_own_code_comes_before_libraries() -> None:
    in_library = Fallback(2, "9/0", "error while compiling", "boom")
    own = GraphBreak("0/0", (0, 3), "print")
    functions = (*FUNCTIONS, Function("g", "lib.g", 1, 30, 39))
    of = replace(
        run(breaks=(own,), fallbacks=(in_library,)), sources=(Source("/m.py", ""), LIBRARY), functions=functions
    )
    found = findings_of(of)
    assert [each.title for each in found] == [
        "Graph break in f: print",
        "lib.g runs as plain Python: error while compiling",
    ]
    assert found[0].weight < found[1].weight


def test_a_break_in_a_library_is_found_at_the_line_that_leads_there() -> None:
    broken = GraphBreak("0/0", (1, 30), "item()", stack=((0, 3), (1, 12), (1, 30)), advice="Keep it a tensor.")
    (found,) = findings_of(replace(run(breaks=(broken,)), sources=(Source("/m.py", ""), LIBRARY)))
    assert found.place == (0, 3)
    assert found.text == "It is in lib.py:30, which this line comes to. Keep it a tensor."


def test_frames_of_depyf_and_of_dumped_code_are_not_the_programs_own() -> None:
    for path in (headline.__file__, "/tmp/dump/__transformed_code_1_for_forward.py", "/d/__compiled_fn_1.kernel_0.py"):
        assert is_library(str(path)), path
    assert not is_library("/home/me/train.py")
    assert not is_library("/home/me/transformed_code.py")


def test_recompilations_of_two_causes_have_two_titles() -> None:
    size = FailedGuard("0/0", "s", "x has size 3", checked="size of x in dimension 0")
    number = FailedGuard("0/0", "n", "n is 2", checked="n")
    recompiles = (
        Recompile("0/1", 0, (size,), place=(0, 4), cause="size"),
        Recompile("0/2", 0, (number,), place=(0, 4), cause="number"),
    )
    assert titles(run(recompiles=recompiles)) == [
        "f was recompiled once (guard on size of x in dimension 0)",
        "f was recompiled once (guard on n)",
    ]
    assert titles(run(recompiles=recompiles[1:])) == ["f was recompiled once"]
