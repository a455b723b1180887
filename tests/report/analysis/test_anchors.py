"""Locations from a compiler cache refer to this run's files, or are dropped."""

from __future__ import annotations

from typing import List, Sequence, Tuple

import pytest

from depyf.report.analysis.facts import Files
from depyf.report.analysis.from_events import build_run
from depyf.report.model.run import Run
from depyf.torch_trace.events import Event
from depyf.torch_trace.provenance import kernel_launches_event, node_stacks_event

NOW = "/home/me/net.py"
HIT = Event("fx_graph_cache_hit", "0/0", 0, {}, "{}", 1.0)
STEPS = ("y = x.sin()", "z = y * 2", "return z.cos()")
MODULE = """\
cpp_fused_0 = async_compile.cpp_pybinding(['float*'], r'''
''')

class Runner:
    def call(self, args):
        cpp_fused_0(buf0)
"""

Lines = Sequence[Tuple[int, str]]


def at(first: int, steps: Sequence[str] = STEPS) -> Lines:
    return list(enumerate(steps, first))


def graph(name: str, path: str, lines: Lines) -> Event:
    nodes = "".join(
        f'        # File: {path}:{line} in f, code: {code}\n        n{i}: "f32[4]" = op(x)\n\n'
        for i, (line, code) in enumerate(lines)
    )
    text = f"class GraphModule(torch.nn.Module):\n    def forward(self, x):\n{nodes}        return (n0,)\n"
    return Event(name, "0/0", 0, {}, text, 1.0)


def tracebacks(path: str, lines: Lines) -> List[str]:
    return [f'  File "{path}", line {line}, in f\n    {code}\n' for line, code in lines]


def run_of(then: Lines, now: Lines, path: str = NOW, hit: bool = True, noted: str = "") -> Run:
    """A run that captured the lines ``now``, with a graph and a kernel whose lines are ``then``."""
    later, code = graph("aot_inference_graph", path, then), Event("inductor_output_code", "0/0", 0, {}, MODULE, 1.0)
    events = [graph("dynamo_output_graph", NOW, now), later]
    events.append(kernel_launches_event(code, [("cpp_fused_0", [], tracebacks(path, then))]))
    if noted:
        stacks = dict(zip(("n0", "n1", "n2"), tracebacks(noted, now)))
        events.append(node_stacks_event(later, "Forward_graph", stacks))
    return build_run([*events, code, *([HIT] if hit else [])], files=Files(read=lambda path: "text\n" * 50))


def found(run: Run) -> Tuple[List[Tuple[str, int]], List[Tuple[str, int]]]:
    """The places of the later graph's nodes, and of the kernel."""
    (later,) = (each for each in run.artifacts if each.stage == "Forward_graph")
    (kernel,) = run.kernels
    graph_places = [place for link in later.links for place in link.places]
    return tuple([(run.sources[n].path, line) for n, line in each] for each in (graph_places, kernel.places))  # type: ignore[return-value]


def places(*lines: int, path: str = NOW) -> Tuple[List[Tuple[str, int]], List[Tuple[str, int]]]:
    return [(path, line) for line in lines], [(path, line) for line in lines]


@pytest.mark.parametrize("moved_by", [1, 3, -1])
def test_lines_of_then_are_those_of_now(moved_by: int) -> None:
    """By one line: what was the second line is a line of the function now, but another one."""
    run = run_of(at(2), at(2 + moved_by))
    assert found(run) == places(2 + moved_by, 3 + moved_by, 4 + moved_by)
    assert ["texts of 2 graphs and kernel files name lines of then" in note for note in run.notes] == [True]


def test_a_program_that_lies_elsewhere_now() -> None:
    run = run_of(at(2), at(3), path="/elsewhere/net.py")
    assert found(run) == places(3, 4, 5)
    assert [source.path for source in run.sources] == [NOW]


def test_lines_between_which_something_was_written_are_known_by_their_text() -> None:
    now = [(2, STEPS[0]), (5, STEPS[1]), (9, STEPS[2])]
    assert found(run_of(at(2), now)) == places(2, 5, 9)


def test_lines_that_say_the_same_are_told_by_their_order_where_all_are_there() -> None:
    twice = ("x = relu(x)", "x = relu(x)", "return x")
    assert found(run_of(at(2, twice), [(2, twice[0]), (4, twice[1]), (5, twice[2])])) == places(2, 4, 5)


def test_one_of_two_lines_that_say_the_same_is_not_guessed() -> None:
    then, now = [(3, "x = relu(x)")], [(3, "x = relu(x)"), (4, "x = relu(x)")]
    assert found(run_of(then, now)) == places()


def test_what_can_t_be_told_has_no_place_and_that_is_said_once() -> None:
    run = run_of([(3, "x = relu(x)"), (5, "return x")], [(2, "x = relu(x)"), (4, "x = relu(x)"), (8, "return x")])
    assert found(run) == places(8)
    (note,) = (each for each in run.notes if "could not be determined" in each)
    assert "Of 2 texts out of a compiler cache" in note
    assert "force_recompile=True" in note


def test_lines_that_say_something_else_now_have_no_place() -> None:
    assert found(run_of([(2, "y = sin(x)")], at(2))) == places()


def test_nodes_that_were_noted_in_this_run_stay_where_the_text_is_old() -> None:
    assert found(run_of(at(2), at(3), noted=NOW)) == places(3, 4, 5)


def test_a_file_that_is_as_it_was_needs_no_note() -> None:
    run = run_of(at(2), at(2))
    assert (found(run), run.notes) == (places(2, 3, 4), ())


def test_a_path_that_torch_cuts_off_is_the_same_file() -> None:
    run = run_of(at(2), at(2), path="me/net.py")
    assert (found(run)[0], run.notes) == (places(2, 3, 4)[0], ())


def test_without_a_cache_everything_is_as_torch_says() -> None:
    run = run_of(at(2), at(30), path="/other/file.py", hit=False)
    assert (found(run), run.notes) == (places(2, 3, 4, path="/other/file.py"), ())
