"""Findings: each is reported once."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from depyf.report.analysis.findings import findings_of
from depyf.report.analysis.in_parts import Parts
from depyf.report.model import headline
from depyf.report.model.phases import parts_in_words
from depyf.report.model.run import (
    Artifact,
    Compilation,
    FailedEntryGuard,
    Fallback,
    Finding,
    Function,
    GraphBreak,
    Phase,
    Recompile,
    Run,
    Shadow,
    ShadowedEntry,
    SourceFile,
)

FUNCTIONS = (Function("f", "f", 0, 1, 9), Function("torch_dynamo_resume_in_f_at_4", "f", 0, 1, 9, 0, 4))


def run(**fields: object) -> Run:
    ids = ("0/0", "0/1", "1/0", "1/1")
    compilations = tuple(Compilation(each, int(each[0])) for each in ids)
    return Run(sources=(SourceFile("/m.py", ""),), functions=FUNCTIONS, compilations=compilations, **fields)  # type: ignore


def recompile(compile_id: str, function: int) -> Recompile:
    return Recompile(
        compile_id, function, (FailedEntryGuard("x", "n == 1", "n is 2, and was compiled for 1"),), place=(0, 4)
    )


def titles(of: Run) -> list:  # type: ignore[type-arg]
    return [each.title for each in findings_of(of, Parts())]


def test_recompiles_of_what_goes_on_after_a_break_are_said_to_be_that() -> None:
    own, resumed = recompile("0/1", 0), recompile("1/1", 1)
    assert titles(run(recompiles=(own,))) == ["f was recompiled once"]
    assert titles(run(recompiles=(resumed,))) == ["f was recompiled once, where it resumes after a graph break"]
    assert titles(run(recompiles=(own, resumed))) == [
        "f was recompiled 2 times, once where it resumes after a graph break"
    ]
    assert findings_of(run(recompiles=(own,)), Parts())[0].place == (0, 4)


def test_a_break_that_leaves_the_frame_to_python_is_reported_as_that_only() -> None:
    broken = GraphBreak("0/0", (0, 3), "Data-dependent branching")
    lost = Fallback(0, "0/0", "graph break that Dynamo can't go on from", "in a loop", (0, 3))
    assert titles(run(breaks=(broken,))) == ["Graph break in f: Data-dependent branching"]
    assert titles(run(breaks=(broken,), fallbacks=(lost,))) == [f"f runs as plain Python: {lost.cause}"]
    elsewhere = GraphBreak("0/0", (0, 5), "print")
    assert len(titles(run(breaks=(broken, elsewhere), fallbacks=(lost,)))) == 2


def test_another_break_of_the_line_with_a_fallback_is_reported_too() -> None:
    broken = GraphBreak("0/0", (0, 3), "Attempted to call function marked as skipped")
    lost = Fallback(1, "1/1", "graph break that Dynamo can't go on from", "Observed exception", (0, 3))
    found = titles(run(breaks=(broken,), fallbacks=(lost,)))
    assert found == [
        "f, resumed at line 4, runs as plain Python: graph break that Dynamo can't go on from",
        "Graph break in f: Attempted to call function marked as skipped",
    ]


def test_a_break_in_a_called_function_is_one_finding_of_that_function() -> None:
    functions = (Function("f", "f", 0, 1, 9), Function("g", "g", 0, 11, 19), Function("h", "h", 0, 21, 29))
    caller, called = GraphBreak("0/0", (0, 13), "print"), GraphBreak("1/0", (0, 13), "print")
    (found,) = findings_of(replace(run(breaks=(caller, called)), functions=functions), Parts())
    assert found.title == "Graph break in g: print"
    assert found.text == "This breaks graphs of f, too."
    lost = Fallback(1, "1/0", "graph break that Dynamo can't go on from", "print", (0, 13))
    assert titles(replace(run(breaks=(caller, called), fallbacks=(lost,)), functions=functions)) == [
        f"g runs as plain Python: {lost.cause}"
    ]
    compilations = tuple(Compilation(f"{each}/0", each) for each in range(3))
    both = (caller, GraphBreak("2/0", (0, 13), "print"), called)
    (found,) = findings_of(replace(run(breaks=both), functions=functions, compilations=compilations), Parts())
    assert found.text == "This breaks graphs of f, h, too."
    (found,) = findings_of(replace(run(breaks=both[:2]), functions=functions, compilations=compilations), Parts())
    assert (found.title, found.text) == ("Graph break in f: print", "This breaks graphs of h, too.")  # f is not called
    (found,) = findings_of(replace(run(breaks=(caller,)), functions=functions), Parts())
    assert found.title == "Graph break in f: print"
    nowhere = tuple(GraphBreak(each, None, "print") for each in ("0/0", "1/0"))
    assert len(titles(replace(run(breaks=nowhere), functions=functions))) == 2


def test_functions_that_resume_each_other_in_a_circle_have_some_root() -> None:
    circle = (Function("f", "f", 0, 1, 9, 1), Function("g", "g", 0, 1, 9, 0))
    assert Run(functions=circle).root(0) in (0, 1)


def test_of_phases_that_wait_for_each_other_only_the_slowest_is_told() -> None:
    compiled = (Compilation("0/0", 0, seconds=20.0),)
    phases = (Phase("0/0", "compile_file", 0.0, 14.7), Phase("0/0", "async_compile.wait", 0.0, 14.4))
    slow = findings_of(Run(functions=FUNCTIONS, compilations=compiled, phases=phases), Parts())
    assert [each.title for each in slow] == ["Most of the compile time is the C++ compiler"]
    assert "TORCHINDUCTOR_CACHE_DIR" in slow[0].text
    assert not findings_of(Run(functions=FUNCTIONS, compilations=compiled), Parts())
    last = findings_of(
        Run(functions=FUNCTIONS, compilations=compiled, phases=phases), Parts(), (Finding("unsound", ""),)
    )
    assert [each.title for each in last] == ["unsound", slow[0].title]  # the machine comes last


def test_the_headline_says_what_takes_the_time_as_far_as_it_is_known() -> None:
    phases = (Phase("0/0", "compile_file", 0.0, 9.0), Phase("0/0", "dynamo", 0.0, 1.0))

    def said(seconds: Optional[float]) -> str:
        of = (Compilation("0/0", 0, seconds=seconds),)
        return headline.headline(Run(functions=FUNCTIONS, compilations=of, phases=phases)).rpartition(", ")[2]

    assert said(12.0) == "75 % of the compile time in the C++ compiler"
    assert said(20.0) == "without graph breaks or recompilations"  # of which 9 s are not the most
    for unknown in (None, 0.0, 6.0):  # kernels are compiled side by side: more than the time of the compilation
        assert said(unknown) == "most of the compile time in the C++ compiler"


def test_graph_breaks_of_what_was_compiled_before_are_not_said_to_be_none() -> None:
    before = Run(functions=FUNCTIONS, compilations=(Compilation("0/0", 0, graph="__compiled_fn_1", earlier=True),))
    assert "graph breaks from then are not known" in headline.headline(before)
    assert "without" not in headline.headline(before)


def test_what_was_loaded_and_not_compiled_is_no_share_of_the_compile_time() -> None:
    """vLLM loads what it compiled in an earlier run: there is no compilation, and PyTorch reports the loading."""
    kernels = tuple(Artifact(f"__compiled_fn_-1.kernel_{number}.py", "kernels", "kernels") for number in range(11))
    loaded = Run(artifacts=kernels, phases=(Phase(None, "PyCodeCache.load_by_key_path", 0.0, 10.4),))
    assert headline.headline(loaded) == "nothing was compiled, 11 compiled graphs of an earlier run were loaded"
    (slow,) = findings_of(loaded, Parts())
    assert slow.text.startswith("10.4 s, without nested phases")
    exported = Run(artifacts=(Artifact("f.py", "graph", "a graph"),))
    assert headline.headline(exported) == "nothing was compiled, 1 file of other calls"


LIBRARY = SourceFile("/site-packages/lib.py", "", library=True)


def test_each_kind_of_graph_break_is_a_finding_with_its_own_advice() -> None:
    breaks = (
        GraphBreak("0/0", (0, 3), "print", advice="Print after it."),
        GraphBreak("0/1", (0, 3), "print", advice="Print after it."),
        GraphBreak("0/0", (0, 5), "print", advice="Print after it."),
        GraphBreak("0/0", (0, 7), "item()", advice="Keep it a tensor."),
    )
    found = {each.title: each.text for each in findings_of(run(breaks=breaks), Parts())}
    assert found == {
        "2 graph breaks in f: print": "Print after it. Also at m.py:5.",
        "Graph break in f: item()": "Keep it a tensor.",
    }


def test_a_resume_function_is_named_by_the_program() -> None:
    lost = Fallback(1, "1/1", "recompile limit reached", "", (0, 4))
    assert titles(run(fallbacks=(lost,))) == ["f, resumed at line 4, hit the recompile limit"]


def test_findings_are_in_the_order_of_what_they_cost() -> None:
    functions = (*FUNCTIONS, Function("torch_dynamo_resume_in_f_at_7", "f", 0, 1, 9, 0, 7))
    took = {"0/0": (0, 90.0), "0/1": (0, 3.0), "1/0": (1, 2.0), "2/0": (2, 8.0)}
    compilations = tuple(Compilation(each, function, seconds=spent) for each, (function, spent) in took.items())
    breaks = tuple(GraphBreak("0/0", (0, line), f"at {line}") for line in (4, 7))
    of = replace(run(breaks=breaks, recompiles=(recompile("0/1", 0),)), functions=functions, compilations=compilations)
    assert titles(of) == ["Graph break in f: at 7", "f was recompiled once", "Graph break in f: at 4"]
    in_a_caller = GraphBreak("3/0", (0, 4), "at 4", stack=((0, 24), (0, 4)))
    caller = (Function("g", "g", 0, 20, 29), Function("torch_dynamo_resume_in_g_at_24", "g", 0, 20, 29, 3, 24))
    more = (Compilation("3/0", 3), Compilation("4/0", 4, seconds=50.0))
    of = replace(
        of, functions=(*functions, *caller), compilations=(*compilations, *more), breaks=(*breaks, in_a_caller)
    )
    assert titles(of)[0] == "Graph break in f: at 4"


def test_the_cost_is_seconds_then_the_number_of_times() -> None:
    """A break in many places does not come before one that costs more. A limit does: later calls run uncompiled."""
    functions = (*FUNCTIONS, Function("g", "g", 0, 20, 29))
    seconds = {"0/0": None, "1/0": 0.4, "2/0": 0.2}
    compilations = tuple(Compilation(each, int(each[0]), seconds=took) for each, took in seconds.items())
    many = tuple(GraphBreak("0/0", (0, line), "print") for line in range(5, 9))
    breaks = (GraphBreak("0/0", (0, 2), "disable"), *many, GraphBreak("0/0", (0, 4), "item()"))
    lost = tuple(Fallback(2, "2/0", "recompile limit reached", "", (0, 22)) for _ in range(3))
    of = replace(run(breaks=breaks, fallbacks=lost), functions=functions, compilations=compilations)
    assert [(each.title, each.seconds, each.count) for each in findings_of(of, Parts(), (Finding("unsound", ""),))] == [
        ("g hit the recompile limit", 0.2, 3),
        ("Graph break in f: item()", 0.4, 1),
        ("4 graph breaks in f: print", 0.0, 4),
        ("unsound", None, 1),
        ("Graph break in f: disable", 0.0, 1),
    ]


def test_a_limit_costs_the_compilation_that_it_ended_alone() -> None:
    compilations = (
        Compilation("0/0", 0, seconds=90.0),
        Compilation("1/0", 1, seconds=2.0),
        Compilation("1/1", 1, "failed", seconds=0.5),
    )
    lost = Fallback(1, "1/1", "recompile limit reached", "", (0, 4), calls=8)
    (found,) = findings_of(replace(run(fallbacks=(lost,)), compilations=compilations), Parts())
    assert found.seconds == 0.5
    assert found.text.startswith("8 calls ran as plain Python")


def test_costs_do_not_overlap_and_are_without_the_hooks_of_depyf() -> None:
    """Two kinds of breaks lead to the same resume function, which is recompiled, too, and reaches a limit."""
    functions = (*FUNCTIONS, Function("torch_dynamo_resume_in_f_at_7", "f", 0, 1, 9, 0, 7))
    took = {"0/0": (0, 9.0), "1/0": (1, 2.0), "1/1": (1, 4.0), "1/2": (1, 0.5), "2/0": (2, 8.0), "2/1": (2, 16.0)}
    compilations = tuple(Compilation(each, number, seconds=spent) for each, (number, spent) in took.items())
    breaks = (
        GraphBreak("0/0", (0, 4), "item()"),
        GraphBreak("0/0", (0, 4), "print"),
        GraphBreak("1/0", (0, 7), "print", stack=((0, 4), (0, 7))),
    )
    limit = Fallback(1, "1/2", "recompile limit reached", "", (0, 4))
    hooks = Phase("2/0", "bytecode_hooks", 0.0, 3.0)
    of = replace(
        run(breaks=breaks, recompiles=(recompile("1/1", 1), recompile("2/1", 2)), fallbacks=(limit,), phases=(hooks,)),
        functions=functions,
        compilations=compilations,
    )
    costs = {each.title.partition(" (")[0]: each.seconds for each in findings_of(of, Parts())}
    assert costs["f, resumed at line 4, hit the recompile limit"] == 0.5
    assert sorted(filter(None, costs.values())) == [0.5, 2.0, 5.0, 20.0]
    assert sum(each or 0.0 for each in costs.values()) <= sum(seconds for _, seconds in took.values()) - 3.0


def test_each_cause_of_recompilations_is_a_finding_with_its_own_advice() -> None:
    size, number = FailedEntryGuard("0/0", "s", "x has size 3"), FailedEntryGuard("0/0", "n", "n is 2")
    resumed = FailedEntryGuard("1/0", "s", "h has size 3")
    recompiles = (
        Recompile("1/1", 1, (resumed,), "Mark the arguments.", (0, 5), "size"),
        Recompile("1/2", 1, (resumed,), "Mark x.", (0, 5), "size"),
        Recompile("0/1", 0, (size,), "Mark x.", (0, 4), "size"),
        Recompile("0/2", 0, (number,), "Pass a tensor.", (0, 6), "number"),
    )
    found = {each.title: each.text for each in findings_of(run(recompiles=recompiles), Parts())}
    assert found == {
        "f was recompiled 2 times, once where it resumes after a graph break": "Because x has size 3; h has size "
        "3. Mark x.",
        "f was recompiled once, where it resumes after a graph break": "Because h has size 3. Mark the arguments.",
        "f was recompiled once": "Because n is 2. Pass a tensor.",
    }


def test_one_cause_is_one_finding_whatever_else_has_changed() -> None:
    """Found in a reinforcement loop: each reward of an episode made a finding of its own."""
    more = "; more has changed since that entry was compiled: rewards[{}] (the same)."
    recompiles = tuple(
        Recompile(
            f"0/{number}",
            0,
            (FailedEntryGuard("0/0", "n", f"rewards[{number}] is 2.0", checked=f"rewards[{number}]"),),
            "Pass a tensor" + (more.format(number + 1) if number < 3 else "."),
            (0, 6),
            "number",
        )
        for number in (1, 2, 3)
    )
    (found,) = findings_of(run(recompiles=recompiles), Parts())
    assert found.title == "f was recompiled 3 times (guard on rewards[1] and 2 more)"
    assert found.text.endswith("Pass a tensor. In 2 of the 3, more has changed: each of them says what.")
    (one,) = findings_of(run(recompiles=recompiles[:1]), Parts())
    assert one.text.endswith("Pass a tensor" + more.format(2))


def test_breaks_of_one_title_with_different_advice_are_different_findings() -> None:
    breaks = (GraphBreak("0/0", (0, 4), "skipped", advice="Read the time before."),)
    breaks += (GraphBreak("0/0", (0, 5), "skipped", advice="Draw the number before."),)
    found = [each.text for each in findings_of(run(breaks=breaks), Parts())]
    assert found == ["Read the time before.", "Draw the number before."]


def test_the_programs_own_code_comes_before_libraries() -> None:
    in_library = Fallback(2, "9/0", "error while compiling", "boom")
    took = (Compilation("0/0", 0), Compilation("9/0", 2, seconds=5.0))
    own = GraphBreak("0/0", (0, 3), "print")
    functions = (*FUNCTIONS, Function("g", "lib.g", 1, 30, 39))
    of = replace(
        run(breaks=(own,), fallbacks=(in_library,)),
        sources=(SourceFile("/m.py", ""), LIBRARY),
        functions=functions,
        compilations=took,
    )
    found = findings_of(of, Parts())
    assert [each.title for each in found] == [
        "Graph break in f: print",
        "lib.g runs as plain Python: error while compiling",
    ]


def test_a_break_in_a_library_is_found_at_the_line_that_leads_there() -> None:
    broken = GraphBreak("0/0", (1, 30), "item()", stack=((0, 3), (1, 12), (1, 30)), advice="Keep it a tensor.")
    (found,) = findings_of(replace(run(breaks=(broken,)), sources=(SourceFile("/m.py", ""), LIBRARY)), Parts())
    assert found.place == (0, 3)
    assert found.text == "It is in lib.py:30, which is reached from this line. Keep it a tensor."


def test_a_break_of_ddp_costs_nothing() -> None:
    ddp = SourceFile("/env/lib/python3.11/site-packages/torch/nn/parallel/distributed.py", "", library=True)
    broken = GraphBreak("0/0", (1, 30), "disable", stack=((0, 3), (1, 12), (1, 30)))
    (found,) = findings_of(replace(run(breaks=(broken,)), sources=(SourceFile("/m.py", ""), ddp)), Parts())
    assert found.seconds is None


def test_the_title_of_recompilations_has_the_guard() -> None:
    size = FailedEntryGuard("0/0", "s", "x has size 3", checked="size of x in dimension 0")
    number = FailedEntryGuard("0/0", "n", "n is 2", checked="n")
    recompiles = (
        Recompile("0/1", 0, (size,), place=(0, 4), cause="size"),
        Recompile("0/2", 0, (number,), place=(0, 4), cause="number"),
    )
    assert titles(run(recompiles=recompiles)) == [
        "f was recompiled once (guard on size of x in dimension 0)",
        "f was recompiled once (guard on n)",
    ]
    assert titles(run(recompiles=recompiles[1:])) == ["f was recompiled once (guard on n)"]


def test_waiting_for_a_compiler_that_is_counted_is_not_counted_again() -> None:
    both = (Phase(None, "compile_file", 0.0, 9.0), Phase("0/0", "async_compile.wait", 0.0, 10.0))
    assert [(words, seconds) for seconds, words, _ in parts_in_words(run(phases=both))] == [
        ("the C++ compiler", 9.0),
        ("the compilers of kernels", 1.0),
    ]
    alone = parts_in_words(run(phases=both[1:]))
    assert [(words, seconds) for seconds, words, _ in alone] == [("the compilers of kernels", 10.0)]


def test_what_shadow_found_comes_first() -> None:
    stale = ShadowedEntry("0/0", "stale", "f", "n was 1, is 2", (0, 4), "output differs", "compile anew")
    of = run(recompiles=(recompile("0/1", 0),), shadow=Shadow(9, 2, 2, found=(stale,)))
    first, second = findings_of(of, Parts())
    assert first == Finding(
        "Compiled f computes something else than eager mode: n was 1, is 2",
        "Output differs. Compile anew.",
        place=(0, 4),
        compile_id="0/0",
        kind="stale",
    )
    assert second.kind == "recompilation"
