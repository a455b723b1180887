"""The comparison of two runs reports what changed with the code that changed, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional

import pytest

from depyf.report.analysis.facts import Facts, Files, TransformedFact
from depyf.report.analysis.from_events import build_run
from depyf.report.diff.comparison import RunComparison, compare
from depyf.report.diff.comparison_output import as_differences, comparison_lines, tables_of
from depyf.report.diff.graph_text import plain_graph
from depyf.report.diff.matching import ComparedRun
from depyf.report.diff.times import Times
from depyf.report.model.counts import RAISED
from depyf.report.model.run import (
    Artifact,
    Compilation,
    FailedEntryGuard,
    Fallback,
    Function,
    GraphBreak,
    Link,
    ModuleKernel,
    Phase,
    Recompile,
    Run,
    SourceFile,
)
from depyf.torch_trace.events import Event

GRAPH = "# Captured_Graph of __compiled_fn_{n}, compile id {id}\n# This file runs.\nimport torch\n\n\n" + (
    "class GraphModule(torch.nn.Module):\n"
    '    def forward(self, x: "f32[4]"):\n'
    "        # File: /somewhere/{n}/prog.py:{n} in f, code: y = x + 1\n"
    "        y = x {op} 1\n"
    "        return y\n"
)
KERNEL = "# AOT ID\ncpp_fused_0 = '''\n#include \"/tmp/{n}.h\"\n    out = in {op} 1;\n'''\n"


def titles_of(comparison: RunComparison) -> List[str]:
    return [change.title for change in comparison.changes]


def run(n: int = 1, op: str = "+", line: int = 14) -> Run:
    resume = f"torch_dynamo_resume_in_f_at_{line}"
    return Run(
        sources=(SourceFile(f"/somewhere/{n}/prog.py"),),
        functions=(Function("f", "f", 0, 1, 5), Function(resume, resume, 0, 1, 5, resumes=0, resumes_at=line)),
        compilations=(Compilation(f"{n}/0", 0, seconds=float(n)), Compilation(f"{n + 1}/0", 1, seconds=1.0)),
        artifacts=(
            Artifact("g", "graph", "t", f"{n}/0", "Captured_Graph", 10, text=GRAPH.format(n=n, id=f"{n}/0", op=op)),
            Artifact("p", "graph", "t", f"{n}/0", "AFTER_POST_GRAD", 80, text=GRAPH.format(n=n, id=f"{n}/0", op=op)),
            Artifact("k", "kernels", "t", f"{n}/0", "", 100, text=KERNEL.format(n=n, op=op)),
        ),
        kernels=(
            ModuleKernel("k", "cpp_fused_0", f"{n}/0", False, first=2, last=5),
            ModuleKernel("k", "extern_kernels.mm", f"{n}/0", False, extern=True, calls=(9,)),
        ),
        breaks=(GraphBreak(f"{n}/0", (0, line), "Encountered graph break:\n\nprint"),),
        phases=(Phase(f"{n}/0", "dynamo", 0.0, float(n)),),
    )


def compared(before: Run, after: Run) -> RunComparison:
    return compare(
        ComparedRun("old", before, lambda found: found.text), ComparedRun("new", after, lambda found: found.text)
    )


def titles(before: Run, after: Run) -> List[str]:
    return [change.title for change in compared(before, after).changes]


def test_ids_paths_lines_names_and_times_do_not_count() -> None:
    found = compared(run(), run(n=7, line=20))
    assert found.same
    assert found.times == {
        "compile time": Times((2.0,), (8.0,)),
        "  tracing the program (Dynamo)": Times((1.0,), (7.0,)),
    }
    assert comparison_lines(found)[-1] == "the same was compiled"


def test_a_graph_that_changed_is_shown_stage_by_stage() -> None:
    graph, kernel = compared(run(), run(op="*")).changes
    assert graph.title == "f (prog.py): Captured_Graph, AFTER_POST_GRAD changed"
    assert [stage for stage, _ in graph.diffs] == ["Captured_Graph", "AFTER_POST_GRAD"]
    assert graph.diffs[0][1][-3:] == ("-        y = x + 1", "+        y = x * 1", "         return y")
    assert kernel.title == "f (prog.py): kernels changed: cpp_fused_0"
    assert kernel.diffs[0][1][-3:-1] == ("-    out = in + 1;", "+    out = in * 1;")


def test_kernels_that_are_new_or_gone_are_named() -> None:
    bare = replace(run(), kernels=run().kernels[:1])
    assert titles(run(), bare) == ["f (prog.py): kernels gone: extern_kernels.mm"]
    assert titles(bare, run()) == ["f (prog.py): kernels new: extern_kernels.mm"]


def test_breaks_are_counted_by_function_and_reason() -> None:
    (one,) = run().breaks
    elsewhere = replace(one, place=(0, 2))
    more = replace(run(), breaks=(one, one, elsewhere, replace(one, reason="item()", place=(0, 3))))
    new = compared(run(), more).changes
    assert [change.title for change in new] == ["Graph break in f: 1 before, 2 now", "Graph break in f: new"]
    assert new[1].text == "item() (prog.py:3)"
    assert titles(more, replace(run(), breaks=()))[-1] == "Graph break in f: gone"


def test_recompiles_come_with_their_reasons() -> None:
    again = Recompile("1/1", 0, (FailedEntryGuard("1/0", "n == 3", "n was 3, is 4"),))
    more = replace(run(), recompiles=(again,))
    (change,) = compared(run(), more).changes
    assert change.title == "Recompilations of f (prog.py): 0 before, 1 now"
    assert (change.before, change.after) == ("", "1/1: n was 3, is 4")


@pytest.mark.parametrize("swapped", [False, True])
def test_functions_that_only_one_run_compiles_are_named(swapped: bool) -> None:
    other = replace(run(), functions=(replace(run().functions[0], qualified_name="g"), run().functions[1]), breaks=())
    both = (other, run()) if swapped else (run(), other)
    assert titles(*both)[:2] in (
        ["Compiled now: g (prog.py)", "No longer compiled: f (prog.py)"],
        ["Compiled now: f (prog.py)", "No longer compiled: g (prog.py)"],
    )


def test_failures_and_fallbacks_are_told() -> None:
    failed = replace(run().compilations[0], status="failed", failure="InductorError: no compiler\nmore")
    after = replace(
        run(),
        compilations=(failed, run().compilations[1]),
        fallbacks=(Fallback(0, "1/0", "error while compiling", "no compiler"),),
    )
    assert titles(run(), after) == ["Runs as plain Python in f: new", "f (prog.py): compiled before, failed now"]


CLASSES = """\
class Net:
    def forward(self, x):
        return x


class Other:
    def forward(self, x):
        return x
"""


def as_reported_by(names: bool, source: Optional[str]) -> Run:
    """The same program as a dump (where Python says the qualified names of what runs) or a log has it."""
    functions = []
    for name, line, compile_id in (("forward", 2, "0/0"), ("torch_dynamo_resume_in_forward_at_3", 3, "1/0")):
        meta = {"co_name": name, "co_filename": "/net.py", "co_firstlineno": line, "has_guarded_code": True}
        functions.append((Event("compilation_metrics", compile_id, 0, meta, None, 1.0), (name, "/net.py", line)))
    facts = [
        TransformedFact(compile_id=event.compile_id, function=key, qualified_name=f"Net.{key[0]}", artifact=None)
        for event, key in functions
    ]
    events = [event for event, _ in functions]
    return build_run(events, [], files=Files(read=lambda path: source), facts=Facts(transformed=facts if names else ()))


@pytest.mark.parametrize("source", [CLASSES, None, "quoted only: (("])
def test_a_log_and_a_dump_of_one_program_compile_the_same_functions(source: Optional[str]) -> None:
    dump, log = as_reported_by(True, CLASSES), as_reported_by(False, source)
    for before, after in ((log, dump), (dump, log)):
        assert titles(before, after) == []
    qualified = [each.qualified_name for each in dump.functions]
    assert qualified == ["Net.forward", "Net.torch_dynamo_resume_in_forward_at_3"]


LOGGED = """\
class <lambda>(torch.nn.Module):
    def forward(
        self,
        primals_1: "f32[2, 4][4, 1]cpu",
        primals_2: "Sym(s0)",
    ):
        # File: /net.py:3 in forward, code: return x
        mul: "f32[2, 4][4, 1]cpu" = torch.ops.aten.mul.Tensor(primals_1, 2);  primals_1 = None
        return (
            mul,
            primals_2,
        )
"""
DUMPED = """\
import torch

class GraphModule(torch.nn.Module):
    def forward(self, args_list):
        args_iter = iter(args_list)
        primals_1: "f32[2, 4][4, 1]cpu" = next(args_iter)
        primals_2: "Sym(s0)" = next(args_iter)
        args_list.clear()
        mul: "f32[2, 4][4, 1]cpu" = torch.ops.aten.mul.Tensor(primals_1, 2);  primals_1 = None
        return (mul, primals_2)
"""


def test_a_graph_is_the_same_however_torch_prints_it() -> None:
    assert plain_graph(LOGGED) == plain_graph(DUMPED)
    assert plain_graph(DUMPED.replace("2)", "3)")) != plain_graph(DUMPED)
    assert plain_graph(DUMPED.replace("s0", "s1")) != plain_graph(DUMPED)
    assert plain_graph("class G(M):\n    def forward(self, x):\n        return (x,)\n").endswith("return (x,)")


def test_what_a_log_cannot_know_of_a_fallback_is_no_difference() -> None:
    def with_fallback(cause: str, reason: str) -> Run:
        return replace(run(), fallbacks=(Fallback(0, "1/0", cause, reason),))

    limit = "recompile limit reached"
    assert titles(with_fallback(limit, "config.recompile_limit is 2. exceeded"), with_fallback(limit, "exceeded")) == []
    dump = with_fallback(
        "error while compiling, suppressed", "BackendCompilerFailed: backend='b' raised:\nKeyError: boom"
    )
    assert titles(dump, with_fallback("error while compiling", "backend='b' raised:\nKeyError: boom")) == []
    assert titles(run(), with_fallback("skipped", "No ops traced")) == []
    dump = with_fallback(RAISED, "Unsupported: Failed to trace\n  Hint: no")
    assert titles(dump, with_fallback(RAISED, "Failed to trace\n  Hint: no")) == []
    assert titles(run(), dump) == ["Failed to compile in f: new"]


def test_one_of_what_is_worse_is_called_one() -> None:
    without = replace(run(), breaks=())
    before, after = (ComparedRun(name, each, lambda _: None) for name, each in (("a", without), ("b", run())))
    assert compare(before, after).worse() == ["1 graph break, 0 before"]


def test_fallbacks_that_torch_never_logs_are_compared_between_dumps_only() -> None:
    logged = Fallback(0, "1/0", "graph break that Dynamo can't go on from", "Failed to trace")
    generator = Fallback(0, None, "graph break that Dynamo can't go on from", "Attempt to trace generator")
    dump, other = replace(run(), fallbacks=(logged, generator)), replace(run(), fallbacks=(logged,))
    assert titles(other, dump) == ["Runs as plain Python in f: new"]
    log = replace(other, origin="torch_trace")
    for before, after in ((log, dump), (dump, log)):
        found = compared(before, after)
        assert titles_of(found) == []
        assert found.counts["fallbacks to eager"] == (1, 1)
        assert found.notes == ("not compared: 1 fallback of frames that torch's trace does not log",)
    assert compared(log, log).notes == ()


def test_what_files_alone_do_not_say_is_not_compared() -> None:
    bare = replace(run(), origin="files", breaks=(), phases=(), compilations=run().compilations)
    found = compared(bare, run())
    assert (titles_of(found), list(found.counts), dict(found.times)) == ([], ["compilations", "graphs", "kernels"], {})
    assert "note: old has no manifest: graph breaks" in "\n".join(comparison_lines(found))


def test_long_diffs_are_cut_and_said() -> None:
    lines = comparison_lines(compared(run(), run(op="*")), longest_diff=3)
    assert "  ... 5 more lines (--html FILE has all)" in lines


def test_the_page_gets_all_of_it() -> None:
    found = as_differences(compared(run(), run(op="*")))
    assert [each["title"] for each in found] == ["f (prog.py): another graph", "f (prog.py): other kernels"]
    assert found[1]["text"] == "changed: cpp_fused_0"
    assert list(found[0]["ranks"]) == ["Captured_Graph", "AFTER_POST_GRAD"]
    assert as_differences(compared(run(), run())) == []
    tables = tables_of(compared(run(), run(n=7)))
    assert ["graph breaks", 1, 1, "", True] in tables["numbers"]
    assert ["compile time", 2.0, 8.0, "s", False] in tables["numbers"]
    ((name, before, after),) = tables["functions"]
    assert (name, before["compile_seconds"], after["compile_seconds"]) == ("f (prog.py)", 2.0, 8.0)


def in_file(one: Run, name: str) -> Run:
    return replace(one, sources=(SourceFile(f"/somewhere/{name}"),))


def test_functions_of_a_renamed_file_are_the_same_functions() -> None:
    found = compared(run(), in_file(run(n=7, line=20), "renamed.py"))
    assert found.same
    assert found.notes == ("f was in prog.py and is in renamed.py",)
    assert list(found.functions) == ["f (renamed.py)"]
    assert titles(run(), in_file(run(op="*"), "renamed.py")) == [
        "f (renamed.py): Captured_Graph, AFTER_POST_GRAD changed",
        "f (renamed.py): kernels changed: cpp_fused_0",
    ]


def test_an_unrelated_function_of_the_same_name_in_another_file_is_another_function() -> None:
    body = "def f(x):\n    y = x + 1\n    z = y * 2\n    w = z - y\n    return w\n"
    edited, unrelated = body.replace("z - y", "z + y"), "def f(x):\n    for a in x:\n        g(a)\n    h()\n    k()\n"

    def with_text(run: Run, text: str) -> Run:
        return replace(run, sources=(replace(run.sources[0], text=text),))

    before, after = with_text(run(), body), in_file(run(), "renamed.py")
    assert compared(before, with_text(after, edited)).same
    assert titles(before, with_text(after, unrelated)) == [
        "Compiled now: f (renamed.py)",
        "No longer compiled: f (prog.py)",
    ]


def test_functions_of_which_two_may_be_meant_are_not_matched() -> None:
    one = in_file(run(), "renamed.py")
    two = replace(
        one,
        sources=(*one.sources, SourceFile("/somewhere/other.py")),
        functions=(*one.functions, replace(one.functions[0], source=1)),
        compilations=(*one.compilations, Compilation("9/0", 2)),
    )
    assert "No longer compiled: f (prog.py)" in titles(run(), two)


def test_a_recompilation_that_moved_with_its_function_is_no_change() -> None:
    def recompiled(function: int) -> Run:
        failed = FailedEntryGuard("1/0", "scale", "scale is 2, and was compiled for 1")
        return replace(run(), recompiles=(Recompile("1/1", function, (failed,)),))

    assert titles(recompiled(1), recompiled(0)) == []
    assert titles(recompiled(1), run()) == ["Recompilations of f (prog.py): 1 before, 0 now"]


def test_a_break_that_moved_with_its_function_is_no_change() -> None:
    def broken(function: int) -> Run:
        one = run()
        return replace(one, breaks=(replace(one.breaks[0], compile_id=one.compilations[function].compile_id),))

    assert titles(broken(1), broken(0)) == []


def test_functions_of_one_name_are_counted_together() -> None:
    lambdas = (Function("<lambda>", "<lambda>", 0, 1, 1), Function("<lambda>", "<lambda>", 0, 9, 9))
    two = replace(
        run(), functions=lambdas, compilations=(Compilation("0/0", 0, seconds=1.0), Compilation("1/0", 1, seconds=2.0))
    )
    ((name, (before, after)),) = compared(two, two).functions.items()
    assert name == "<lambda> (prog.py)"
    assert before is not None
    assert before == after
    assert (before.functions, before.graphs, before.compile_seconds) == (2, 2, 3.0)


CALLERS = "def f(x):\n    return g(x)\n\n\ndef g(x):\n    return x + 1\n"


def calling(*compiled: str, inlined: bool) -> Run:
    """A run in which these functions are compiled; with ``inlined`` the graph of ``f`` has the line of ``g``."""
    functions = {"f": Function("f", "f", 0, 1, 2), "g": Function("g", "g", 0, 5, 6)}
    places = ((0, 2), (0, 6)) if inlined else ((0, 2),)
    graph = Artifact("g", "graph", "t", "0/0", "Captured_Graph", 10, text=GRAPH, links=(Link(9, 9, places, ("y",)),))
    return Run(
        sources=(SourceFile("/somewhere/prog.py", CALLERS),),
        functions=tuple(functions[name] for name in compiled),
        compilations=tuple(Compilation(f"{at}/0", at) for at in range(len(compiled))),
        artifacts=(graph,),
    )


def test_a_function_in_the_graph_of_its_caller_is_not_said_to_be_compiled_no_longer() -> None:
    alone, together = calling("f", "g", inlined=False), calling("f", inlined=True)
    assert "Part of the graph of a caller now: g (prog.py)" in titles(alone, together)
    assert "Compiled on its own now: g (prog.py)" in titles(together, alone)
    assert "No longer compiled: g (prog.py)" in titles(alone, calling("f", inlined=False))
    assert "Compiled now: g (prog.py)" in titles(calling("f", inlined=False), alone)


def test_what_is_said_of_a_change_is_short_and_in_words() -> None:
    failed = (
        FailedEntryGuard("0/0", "x", "n is 2, and was compiled for 1"),
        FailedEntryGuard("0/1", "y", "of an older entry"),
    )
    before, after = run(), run()
    after = replace(after, recompiles=(Recompile("1/0", 0, failed),))
    assert [change.after for change in compared(before, after).changes] == ["1/0: n is 2, and was compiled for 1"]
    empty = replace(before, compilations=tuple(replace(each, status="empty") for each in before.compilations))
    assert "f (prog.py): compiled before, no graph now" in titles(before, empty)
    kernels = tuple(ModuleKernel("k", f"cpp_{at}", "1/0", False, extern=True) for at in range(9))
    [title] = titles(before, replace(before, kernels=(*before.kernels, *kernels)))
    assert title == "f (prog.py): kernels new: cpp_0, cpp_1, cpp_2, cpp_3 and 5 more"
