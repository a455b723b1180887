"""Two runs compared: what changed is told with the code that changed, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional

import pytest

from depyf.report.analysis.facts import Facts, Files, TransformedFact
from depyf.report.analysis.from_events import build_run
from depyf.report.diff.comparison import Comparison, as_differences, compare
from depyf.report.diff.comparison_text import comparison_lines
from depyf.report.diff.graph_text import plain_graph
from depyf.report.diff.matching import Side
from depyf.report.model.run import (
    Artifact,
    Compilation,
    FailedGuard,
    Fallback,
    Function,
    GraphBreak,
    Kernel,
    Phase,
    Recompile,
    Run,
    Source,
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


def titles_of(comparison: Comparison) -> List[str]:
    return [change.title for change in comparison.changes]


def run(n: int = 1, op: str = "+", line: int = 14) -> Run:
    resume = f"torch_dynamo_resume_in_f_at_{line}"
    return Run(
        sources=(Source(f"/somewhere/{n}/prog.py"),),
        functions=(Function("f", "f", 0, 1, 5), Function(resume, resume, 0, 1, 5, resumes=0, resumes_at=line)),
        compilations=(Compilation(f"{n}/0", 0, seconds=float(n)), Compilation(f"{n + 1}/0", 1, seconds=1.0)),
        artifacts=(
            Artifact("g", "graph", "t", f"{n}/0", "Captured_Graph", 10, text=GRAPH.format(n=n, id=f"{n}/0", op=op)),
            Artifact("p", "graph", "t", f"{n}/0", "AFTER_POST_GRAD", 80, text=GRAPH.format(n=n, id=f"{n}/0", op=op)),
            Artifact("k", "kernels", "t", f"{n}/0", "", 100, text=KERNEL.format(n=n, op=op)),
        ),
        kernels=(
            Kernel("k", "cpp_fused_0", f"{n}/0", False, first=2, last=5),
            Kernel("k", "extern_kernels.mm", f"{n}/0", False, extern=True, calls=(9,)),
        ),
        breaks=(GraphBreak(f"{n}/0", (0, line), "Encountered graph break:\n\nprint"),),
        phases=(Phase(f"{n}/0", "dynamo", 0.0, float(n)),),
    )


def compared(before: Run, after: Run) -> Comparison:
    return compare(Side("old", before, lambda found: found.text), Side("new", after, lambda found: found.text))


def titles(before: Run, after: Run) -> List[str]:
    return [change.title for change in compared(before, after).changes]


def test_ids_paths_lines_names_and_times_do_not_count() -> None:
    found = compared(run(), run(n=7, line=20))
    assert found.same
    assert found.times == {"compile time": (2.0, 8.0), "  dynamo": (1.0, 7.0)}
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
    again = Recompile("1/1", 0, (FailedGuard("1/0", "n == 3", "n was 3, is 4"),))
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
    dump = with_fallback("error while compiling, raised into the program", "Unsupported: Failed to trace\n  Hint: no")
    log = with_fallback("graph break that Dynamo can't go on from", "Failed to trace\n  Hint: no")
    assert titles(dump, log) == []


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
    assert [each["title"] for each in found[:2]] == [
        "In numbers",
        "f (prog.py): Captured_Graph, AFTER_POST_GRAD changed",
    ]
    assert list(found[1]["ranks"]) == ["Captured_Graph", "AFTER_POST_GRAD"]
    assert as_differences(compared(run(), run()))[0]["title"] == "The same was compiled"
