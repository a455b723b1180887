"""Events of a profiler, recorded or made up, are divided, and joined with what is known of a run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import List, Optional, Sequence, Tuple

import pytest

pytest.importorskip("torch")

from depyf.answers.nonfinite import Line
from depyf.answers.profiled import Gap
from depyf.dynamo.capture.records import KernelFile
from depyf.dynamo.questions.profile import attribution, timeline
from depyf.dynamo.questions.profile.align import align
from depyf.dynamo.questions.profile.attribution import Attribution
from depyf.dynamo.questions.profile.listing import Listed, Listing, Site
from depyf.dynamo.questions.profile.marks import COMPILED, KERNEL, NUMBERED, STEP, MarkedKernel, Marks
from depyf.dynamo.questions.profile.owners import KnownOwners
from depyf.dynamo.questions.profile.spans import spans_of
from depyf.dynamo.questions.profile.units import CALLING, GUARDS, divide
from depyf.report.model.run import (
    Artifact,
    GraphBreak,
    Link,
    ModuleKernel,
    ModulePart,
    Run,
    SourceFile,
)

pytestmark = pytest.mark.torch

HERE = 1


@dataclass
class Range:
    start: float
    end: float


@dataclass
class Kernel:
    name: str
    duration: float


@dataclass
class Event:
    """What the profiler's events have; times are microseconds."""

    name: str
    time_range: Range
    thread: int = 7
    sequence_nr: int = -1
    fwd_thread: Optional[int] = None
    kernels: Sequence[Kernel] = field(default_factory=tuple)
    device_type: object = "DeviceType.CPU"
    is_user_annotation: bool = False


def event(
    name: str, start: float, end: float, sequence: int = -1, *, thread: int = 7, kernels: Sequence[Kernel] = ()
) -> Event:
    return Event(name, Range(start, end), thread, sequence, kernels=kernels)


def step(number: int, at: float) -> Event:
    return event(f"{STEP}{number}", at, at)


def inductor_call(*, on_device: bool = False) -> List[Event]:
    """A call of a region that runs a kernel and a library call, its backward, and an operation outside."""
    kernels = [Kernel("triton_poi_fused_0", 40.0)] if on_device else []
    of_library = [Kernel("sm90_gemm", 60.0)] if on_device else []
    return [
        step(0, 0),
        event("TorchDynamo Cache Lookup", 10, 30),
        event("Torch-Compiled Region: 0/0", 30, 200),
        event("CompiledFunction", 40, 190, 5),
        event("## Call CompiledFxGraph abc ##", 50, 180),
        event(f"{KERNEL}0", 60, 100, kernels=kernels),
        event("aten::addmm", 110, 170, kernels=of_library),
        event("aten::copy_", 120, 130),
        event("aten::linear", 210, 260, 6),
        event("aten::t", 211, 215, 6),
        event("aten::addmm", 220, 255, 7),
        event("autograd::engine::evaluate_function: AddmmBackward0", 300, 350, 7),
        event("AddmmBackward0", 301, 349, 7),
        event("aten::mm", 305, 345),
        event("autograd::engine::evaluate_function: CompiledFunctionBackward", 350, 450, 5),
        event("CompiledFunctionBackward", 351, 449, 5),
        event("## Call CompiledFxGraph def ##", 360, 440),
        event(f"{KERNEL}1", 370, 430),
        step(1, 500),
    ]


def a_run() -> Tuple[Run, List[KernelFile]]:
    links = (Link(1, 1, ((0, 3),), ("sin",)), Link(2, 2, ((0, 4),), ("mul",)), Link(3, 3, ((0, 5),), ("addmm",)))
    graph = Artifact("g", "graph", "", "0/0", order=1, backward=False, links=links)
    graph = Artifact(
        "h", "graph", "", "0/0", order=2, backward=False, links=links,
        modules=(ModulePart("self.a", "Linear", None, ("addmm",)), ModulePart("self", "Net", None, ("sin", "mul"))),
    )  # fmt: skip
    back = Artifact("b", "graph", "", "0/0", order=3, backward=True, links=(Link(1, 1, ((0, 4),), ("mul_1",)),))
    run = Run(
        sources=(SourceFile("/p/model.py"), SourceFile("/t/torch/nn/linear.py")),
        artifacts=(graph, back),
        kernels=(
            ModuleKernel("k0.py", "cpp_fused_0", "0/0", False, calls=(20,), nodes=("sin", "mul", "nothing")),
            ModuleKernel("k0.py", "extern_kernels.addmm", "0/0", False, extern=True, calls=(21,), nodes=("addmm",)),
            ModuleKernel("k1.py", "cpp_fused_0", "0/0", True, calls=(9,), nodes=("mul_1",)),
        ),
        breaks=(GraphBreak("0/0", (0, 8), "a print"),),
    )
    files = [
        KernelFile("0/0", "f", number, f"/dump/k{number}.py", f"/cache/k{number}.py", "", bool(number), False, "")
        for number in (0, 1)
    ]
    return run, files


LISTED = [
    Listed(f"{KERNEL}0", None, 800),
    Listed("aten::addmm", Site("/cache/k0.py", 21, generated=True), 4000, 128),
    Listed("aten::t", Site("/p/model.py", 8, "", "b", "Linear")),
    Listed("aten::addmm", Site("/p/model.py", 8, "", "b", "Linear"), 4000, 256),
    Listed("aten::mm", Site("/p/train.py", 20), 1000, 512),
    Listed(f"{KERNEL}1", None, 80),
]


def attributed(events: Sequence[Event], listed: Sequence[Listed] = LISTED) -> Attribution:
    run, files = a_run()
    division = divide(spans_of(events))
    marks = Marks()
    marks.kernels = [MarkedKernel("/cache/k0.py", "cpp_fused_0"), MarkedKernel("/cache/k1.py", "cpp_fused_0")]
    listing = Listing(lambda path: path.startswith("/cache"), marks.numbered)
    listing.threads[HERE] = list(listed)
    listing.numbered = dict(enumerate(listed))
    owners = KnownOwners(run, files, lambda path: path.startswith("/t/torch"))
    return Attribution(division, align(division, listing, HERE), marks.kernels, owners)


def seconds_of(found: Attribution) -> List[Tuple[str, int, float, float]]:
    return [
        (each.line.file, each.line.line, round(each.cost.forward * 1e6, 3), round(each.cost.backward * 1e6, 3))
        for each in found.lines()
    ]


def test_spans_are_nested_by_time_on_their_thread() -> None:
    spans = spans_of(
        [event("b", 2, 4), event("a", 0, 10), event("c", 5, 12), event("a", 0, 10, thread=8), event("d", 20, 21)]
    )
    assert [(each.name, each.thread) for each in spans] == [("a", 7), ("a", 8), ("d", 7)]
    assert [each.name for each in spans[0].walk()] == ["a", "b", "c"]
    assert spans[0].inside[1].end == pytest.approx(10e-6)  # cut at the end of the span around it
    assert spans[0].own_seconds == pytest.approx(3e-6)


def test_kernels_and_operations_are_on_the_lines_that_they_compute() -> None:
    found = attributed(inductor_call())
    # The fused kernel of 40 us computes two nodes with lines; the library call is one node; the operation outside of
    # the graph is on its own line, and so is the node of its backward.
    assert seconds_of(found) == [
        ("/p/model.py", 8, 50.0, 40.0),
        ("/p/model.py", 4, 20.0, 60.0),
        ("/p/model.py", 5, 60.0, 0.0),
        ("/p/model.py", 3, 20.0, 0.0),
    ]
    assert found.attributed == pytest.approx(1.0)
    assert found.seconds == pytest.approx(250e-6)
    assert sum(each.cost.seconds for each in found.lines()) == pytest.approx(found.seconds)


def test_modules_kernels_and_sizes() -> None:
    found = attributed(inductor_call())
    modules = {(each.name, each.type): round(each.cost.seconds * 1e6, 3) for each in found.modules()}
    assert modules == {("b", "Linear"): 90.0, ("a", "Linear"): 60.0, ("", "Net"): 40.0}
    kernels = {(each.name, each.kind, each.graph): each for each in found.kernels() if not each.cost.backward}
    assert set(kernels) == {
        ("cpp_fused_0", "kernel", "0/0"),
        ("extern_kernels.addmm", "library call", "0/0"),
        ("aten::linear", "operation", ""),
    }
    assert kernels["extern_kernels.addmm", "library call", "0/0"].cost.operations == 128
    fused = kernels["cpp_fused_0", "kernel", "0/0"]
    assert (fused.cost.bytes, fused.lines) == (800, (Line("/p/model.py", 3), Line("/p/model.py", 4)))
    assert next(each for each in found.lines() if each.line.line == 3).cost.shared == pytest.approx(20e-6)


def test_the_parts_of_a_step_add_up() -> None:
    division = divide(spans_of(inductor_call()))
    assert division.spent[0, GUARDS] == pytest.approx(20e-6)
    # Region, forward, wrapper, and the same of the backward, each without what runs in it.
    assert division.spent[0, CALLING] == pytest.approx((20 + 20 + 30 + 18 + 20) * 1e-6)
    parts = attributed(inductor_call()).parts()
    assert parts.seconds == pytest.approx(500e-6)
    whole = parts.graphs + parts.outside + parts.guards + parts.calling + parts.python
    assert whole == pytest.approx(parts.seconds)
    assert parts.graphs == pytest.approx(160e-6)
    assert parts.outside == pytest.approx(90e-6)


def test_what_is_in_no_graph_has_a_reason() -> None:
    found = attributed(inductor_call())
    assert [(each.line and each.line.line, each.reason) for each in found.outside()] == [(8, "a graph break: a print")]


def test_on_a_device_its_kernels_are_the_time() -> None:
    found = attributed(inductor_call(on_device=True))
    assert found.on_device
    assert seconds_of(found)[:2] == [("/p/model.py", 5, 60.0, 0.0), ("/p/model.py", 3, 20.0, 0.0)]
    assert found.seconds == pytest.approx(100e-6)


def test_kernels_of_triton_are_known_by_their_names_and_so_are_those_of_a_replay() -> None:
    run, files = a_run()
    named = [replace(each, name=each.name.replace("cpp_fused", "triton_poi_fused")) for each in run.kernels]
    owners = KnownOwners(replace(run, kernels=tuple(named)), files, lambda _: False)
    replayed = [Kernel("triton_poi_fused_0", 30.0), Kernel("sm90_gemm", 50.0)]
    events = [
        step(0, 0),
        event("Torch-Compiled Region: 0/0", 10, 80),
        event("## Call CompiledFxGraph abc ##", 20, 70),
        event("triton_poi_fused_0", 30, 40, kernels=[Kernel("triton_poi_fused_0", 10.0)]),
        event("Torch-Compiled Region: 0/0", 90, 180),
        event("## Call CompiledFxGraph abc ##", 100, 170, kernels=replayed),
        step(1, 200),
    ]
    found = Attribution(divide(spans_of(events)), {}, [], owners)
    assert [(line, forward) for _, line, forward, _ in seconds_of(found)] == [(3, 20.0), (4, 20.0)]
    kernels = {each.name: (each.kind, each.graph, round(each.cost.seconds * 1e6)) for each in found.kernels()}
    assert kernels == {"triton_poi_fused_0": ("kernel", "0/0", 40), "sm90_gemm": ("kernel", "0/0", 50)}


def in_us(gaps: Sequence[Gap]) -> List[Tuple[object, ...]]:
    """Return gaps as lines and microseconds: the whole, guards, calling, launching."""
    return [
        (each.after and each.after.line, each.before and each.before.line)
        + tuple(round(part * 1e6, 3) for part in (each.seconds, each.guards, each.calling, each.launching))
        for each in gaps
    ]


def test_gaps_are_between_what_computed() -> None:
    found = attributed(inductor_call()).profiled("f", 1)
    assert in_us(found.gaps) == [
        (4, None, 70.0, 0.0, 19.0, 0.0),
        (None, 3, 60.0, 20.0, 30.0, 0.0),
        (8, 8, 45.0, 0.0, 0.0, 0.0),
        (5, 8, 40.0, 0.0, 30.0, 0.0),
        (8, 4, 25.0, 0.0, 19.0, 0.0),
        (4, 5, 10.0, 0.0, 10.0, 0.0),
    ]
    assert sum(each.seconds for each in found.gaps) == pytest.approx(found.parts.seconds - found.seconds)
    assert sum(each.guards for each in found.gaps) == pytest.approx(found.parts.guards)
    assert sum(each.calling for each in found.gaps) == pytest.approx(found.parts.calling)
    assert str(found.gaps[0]) == "70.0 us after /p/model.py:4: calling graphs 19.0 us, other Python 51.0 us"


def test_a_compilation_is_no_gap() -> None:
    events = [step(number, 1000 * number) for number in range(3)]
    for at in (0, 1000):
        events += [event("aten::add", at + 100, at + 200), event("aten::mul", at + 300, at + 400)]
    events += [event(f"{COMPILED}0.0002", 700, 700)]
    found = attributed(events, [])
    # The faster half of two calls is the first, without the time of the compilation.
    assert [(round(each.seconds * 1e6), each.times) for each in found.profiled("f", 2).gaps] == [(600, 4.0)]


def test_a_compilation_at_the_begin_and_one_inside_of_another_are_no_gaps() -> None:
    events = [step(0, 0), event("aten::add", 10, 20), event("aten::mul", 900, 950), step(1, 1000)]
    events += [event(f"{COMPILED}0.0004", 500, 500), event(f"{COMPILED}0.00015", 450, 450)]
    events += [event("Torch-Compiled Region: 0/0", 30, 880)]
    found = attributed(events, []).profiled("f", 1)
    assert found.parts.seconds == pytest.approx(600e-6)
    assert sum(each.seconds for each in found.gaps) == pytest.approx(540e-6)
    assert found.parts.calling == pytest.approx(450e-6)  # without the compilation inside of the region
    assert sum(each.calling for each in found.gaps) == pytest.approx(450e-6)
    late = [step(0, 0), event("aten::add", 8500, 8600), event("aten::mul", 9500, 9600), step(1, 10000)]
    found = attributed([*late, event(f"{COMPILED}0.008", 8100, 8100)], []).profiled("f", 1)
    assert sum(each.seconds for each in found.gaps) == pytest.approx(1800e-6)


def test_on_a_device_a_gap_is_a_time_without_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "machine_limits", lambda device: None)  # a recorded profile is of another machine
    events = [
        step(0, 0),
        event("aten::mm", 100, 150, kernels=[Kernel("gemm", 300)]),
        event("aten::mm", 160, 210, kernels=[Kernel("gemm", 200)]),
        event("aten::sin", 500, 900, kernels=[Kernel("sin", 10)]),
        step(1, 1000),
    ]
    # One kernel was launched by nobody whom the profiler knows.
    of_device = [("gemm", 50, 60), ("gemm", 120, 420), ("gemm", 430, 630), ("sin", 890, 900), ("nothing", 0, 1)]
    for name, start, end in of_device:
        made = event(name, start, end)
        made.device_type = "DeviceType.CUDA"
        events.append(made)
    listed = [
        Listed(name, Site("/p/train.py", line)) for line, name in enumerate(("aten::mm", "aten::mm", "aten::sin"))
    ]
    found = attributed(events, listed).profiled("f", 1)
    assert in_us(found.gaps) == [
        (1, 2, 260.0, 0.0, 0.0, 260.0),
        (None, 0, 120.0, 0.0, 0.0, 20.0),
        (2, None, 100.0, 0.0, 0.0, 0.0),
        (0, 1, 10.0, 0.0, 0.0, 0.0),
    ]
    assert [(each.name, each.where, round(each.start * 1e6)) for each in found.timeline if each.where == "cuda"] == [
        ("gemm", "cuda", 120),
        ("gemm", "cuda", 430),
        ("sin", "cuda", 890),
    ]
    assert [each.what for each in found.timeline if each.where != "cuda"] == ["launching"] * 3


def test_a_device_without_the_times_of_its_kernels_has_no_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "machine_limits", lambda device: None)
    found = attributed(inductor_call(on_device=True)).profiled("f", 1)
    assert found.gaps == ()
    assert found.notes == ("the profiler does not say when each kernel ran on the device: gaps are not known",)


def test_a_mark_on_the_device_is_no_kernel() -> None:
    marked = event("triton_poi_fused_0", 50, 100)
    marked.device_type = "DeviceType.CUDA"
    marked.is_user_annotation = True
    launch = event("triton_poi_fused_0", 10, 20, kernels=[Kernel("triton_poi_fused_0", 40.0)])
    (span,) = spans_of([marked, launch])
    assert [each.start for each in span.on_device] == [None]


def test_the_timeline_has_what_ran_in_order() -> None:
    found = attributed(inductor_call()).profiled("f", 1).timeline
    assert [(each.name, round(each.start * 1e6), round(each.seconds * 1e6)) for each in found[:6]] == [
        ("guards", 10, 20),
        ("calling graphs", 30, 30),  # the region, the forward and the wrapper, which follow each other at once
        ("cpp_fused_0", 60, 40),
        ("calling graphs", 100, 10),
        ("extern_kernels.addmm", 110, 60),
        ("calling graphs", 170, 30),
    ]
    assert found[2].lines == (Line("/p/model.py", 3), Line("/p/model.py", 4))


def test_a_timeline_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_RAN", 2)
    found = attributed(inductor_call()).profiled("f", 1)
    assert len(found.timeline) == 2
    assert found.notes == ("the timeline ends after 2 entries of a call: 9 more are not in it",)


def test_events_of_the_device_itself_are_no_spans() -> None:
    on_device = event("triton_poi_fused_0", 60, 100)
    on_device.device_type = "DeviceType.CUDA"
    assert spans_of([on_device]) == []


def test_without_a_listing_nothing_is_said_of_operations() -> None:
    found = attributed(inductor_call(), [])
    assert found.attributed == pytest.approx(100 / 250)  # kernels know their nodes
    assert [each.line for each in found.outside()] == [None]


def test_a_listing_that_lacks_an_operation_is_found_again() -> None:
    found = attributed(inductor_call(), [*LISTED[:2], Listed("aten::sum", None), *LISTED[2:]])
    assert ("/p/model.py", 5, 60.0, 0.0) in seconds_of(found)
    assert found.kernels()[0].cost.seconds > 0


def test_an_operation_that_is_not_listed_does_not_move_the_list() -> None:
    events = [step(0, 0)]
    events += [
        event(name, at, at + 9) for at, name in zip(range(10, 60, 10), ["add", "detach", "mul", "sum", "detach"])
    ]
    for each in events[1:]:
        each.name = f"aten::{each.name}"
    listed = [Listed(f"aten::{name}", Site("/p/model.py", line)) for line, name in enumerate(("add", "mul", "sum"), 1)]
    found = attributed([*events, step(1, 99)], [*listed, Listed("aten::detach", Site("/p/model.py", 9))])
    assert [line for _, line, _, _ in sorted(seconds_of(found))] == [1, 2, 3, 9]
    assert found.attributed == pytest.approx(4 / 5)


def test_gradients_are_added_out_of_place_while_they_are_listed() -> None:
    found = attributed([step(0, 0), event("aten::add_", 1, 9), step(1, 10)], [Listed("aten::add", Site("/p/a.py", 3))])
    assert [line for _, line, _, _ in seconds_of(found)] == [3]


def test_a_compilation_in_a_step_is_left_out() -> None:
    events = [*inductor_call(), event("aten::addmm", 262, 280), event(f"{COMPILED}0.000025", 286, 286)]
    found = attributed(events)
    assert found.seconds == pytest.approx(250e-6)
    assert found.parts().seconds == pytest.approx(475e-6)


def test_an_operation_that_was_listed_while_it_ran_has_its_number() -> None:
    events = [
        step(0, 0),
        event("aten::linear", 10, 90),
        event(f"{NUMBERED}2", 20, 50),
        event("aten::t", 30, 40),
        event(f"{NUMBERED}3", 50, 80),
        event("aten::addmm", 55, 75),
        step(1, 100),
    ]
    found = attributed(events)
    assert seconds_of(found) == [("/p/model.py", 8, 30.0, 0.0)]
    assert {each.name for each in found.kernels()} == {"aten::t", "aten::addmm"}


def test_a_kernel_of_before_has_no_line_and_is_counted() -> None:
    run, _ = a_run()
    division = divide(spans_of(inductor_call()))
    marks = [MarkedKernel("/cache/k0.py", "cpp_fused_0"), MarkedKernel("/cache/k1.py", "cpp_fused_0")]
    found = Attribution(division, {}, marks, KnownOwners(run, [], lambda _: False))
    assert len(found.unknown) == 2
    assert found.attributed == 0.0, "nothing was listed"


def test_steps_in_which_something_else_ran_do_not_count() -> None:
    events = [step(0, 0), event("aten::sum", 1, 11), step(1, 12), event("aten::sum", 13, 500), step(2, 501)]
    events += [event("aten::sum", 502, 512), step(3, 513)]
    division = divide(spans_of(events))
    assert division.calm_steps() == [0, 2]
    found = attributed(events, [Listed("aten::sum", Site("/p/model.py", 8))])
    assert seconds_of(found) == [("/p/model.py", 8, 10.0, 0.0)]
    assert found.parts().seconds == pytest.approx(12e-6)
