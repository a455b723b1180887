"""From events to the model of a run, without PyTorch."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional

import pytest

import depyf
from depyf.base.own_package import FOLDER
from depyf.dynamo.capture.records import Cause
from depyf.report.analysis.facts import Facts, Files, Recorder, TransformedFact
from depyf.report.analysis.from_events import build_run
from depyf.report.analysis.functions import UNCOMPILED
from depyf.report.model.counts import LIMIT, RAISED, status_in_words
from depyf.report.model.manifest import from_json, to_json
from depyf.report.model.phases import own_seconds
from depyf.report.model.run import Artifact
from depyf.torch_trace.events import Event
from depyf.torch_trace.generations import distinguished
from depyf.torch_trace.provenance import kernel_launches_event, node_stacks_event

USER = "/home/me/net.py"
LIBRARY = "/opt/lib/python3.11/site-packages/torch/nn/modules/linear.py"

SOURCE = """\
class Net:
    def forward(self, x):
        h = self.up(x)
        print(h)
        return self.down(h)
"""


def event(
    name: str, compile_id: Optional[str] = "0/0", payload: Optional[str] = None, meta: Any = None, attempt: int = 0
) -> Event:
    event.clock += 1.0  # type: ignore[attr-defined]
    return Event(name, compile_id, attempt, meta or {}, payload, event.clock)  # type: ignore[attr-defined]


event.clock = 100.0  # type: ignore[attr-defined]


def metrics(name: str = "forward", line: int = 2, compile_id: str = "0/0", **more: Any) -> Event:
    found = {"co_name": name, "co_filename": USER, "co_firstlineno": line, "has_guarded_code": True}
    return event("compilation_metrics", compile_id, meta={**found, "duration_us": 2_000_000, **more})


def read(path: str) -> Optional[str]:
    return SOURCE if path == USER else None


GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4]"):
        l_x_ = L_x_

        # File: torch/nn/modules/linear.py:134 in forward, code: return F.linear(input, self.weight, self.bias)
        linear: "f32[4]" = torch._C._nn.linear(l_x_)

        # File: /home/me/net.py:5 in forward, code: return self.down(h)
        y: "f32[4]" = linear * 2;  linear = None
        return (y,)
"""


def test_a_resume_function_goes_on_with_the_function_that_its_name_says() -> None:
    resume = "torch_dynamo_resume_in_forward_at_4"
    run = build_run([metrics(), metrics(resume, 4, "1/0"), metrics(resume, 4, "2/0")], [], files=Files(read=read))
    names = [(each.name, each.qualified_name, each.first_line, each.last_line) for each in run.functions]
    assert names == [
        ("forward", "Net.forward", 2, 5),
        (resume, f"Net.{resume}", 4, 5),
        (resume, f"Net.{resume}", 4, 5),
    ]
    assert [(each.resumes, each.resumes_at) for each in run.functions] == [(None, None), (0, 4), (0, 4)]
    assert [each.function for each in run.compilations] == [0, 1, 2]


def test_a_function_that_is_known_by_its_resume_function_only_is_added() -> None:
    run = build_run([metrics("torch_dynamo_resume_in_forward_at_4", 4)], [], files=Files(read=read))
    assert [(each.qualified_name, each.resumes) for each in run.functions][1] == ("Net.forward", None)
    assert run.functions[0].resumes == 1


@pytest.mark.parametrize(
    ("kind", "suppressed", "broken", "cause"),
    [
        ("Unsupported", False, False, RAISED),  # fullgraph=True
        ("Unsupported", False, True, "graph break that Dynamo can't go on from"),
        ("Unsupported", None, False, "graph break that Dynamo can't go on from"),  # before PyTorch 2.6
        ("<class 'torch._dynamo.exc.Unsupported'>", None, False, "graph break that Dynamo can't go on from"),  # 2.4
        ("TorchRuntimeError", False, False, RAISED),
        ("FailOnRecompileLimitHit", False, False, RAISED),
        ("TorchRuntimeError", True, False, Cause.ERROR.value),
        ("TorchRuntimeError", None, False, "error while compiling"),
    ],
)
def test_a_log_says_whether_the_program_got_an_error(
    kind: str, suppressed: Optional[bool], broken: bool, cause: str
) -> None:
    failed = metrics(has_guarded_code=False, fail_type=kind, fail_reason="no", config_suppress_errors=suppressed)
    met = [event("dynamo_graph_break_reason", payload="Graph Break Reason: no")] if broken else []
    run = build_run([*met, failed], [], files=Files(read=read))
    assert [each.cause for each in run.fallbacks] == [cause]
    assert run.totals["fallbacks"] == (cause != RAISED)
    assert any("can't be compiled: the call raised" in each.title for each in run.findings) == (cause == RAISED)


def test_a_limit_of_the_programs_is_not_the_recompile_limit() -> None:
    reasons = {"BackendCompilerFailed": "rate limit exceeded", "Unsupported": "Dynamo recompile limit exceeded"}
    failed = [
        metrics(compile_id=f"{n}/1", has_guarded_code=False, fail_type=kind, fail_reason=reason)
        for n, (kind, reason) in enumerate(reasons.items())
    ]
    run = build_run(failed, [], files=Files(read=read))
    assert [each.cause for each in run.fallbacks] == ["error while compiling", LIMIT]
    assert [each.status for each in run.compilations] == ["failed", "limit"]
    assert [status_in_words(each) for each in run.compilations] == ["failed", "limit reached"]


def test_what_became_of_a_compilation() -> None:
    failed = metrics(compile_id="1/0", has_guarded_code=False, fail_type="Unsupported", fail_reason="no\nway")
    events = [
        event("dynamo_output_graph", payload=GRAPH),
        metrics(restart_reasons=["a break\nmore"], guard_latency_us=50),
        event("bwd_compilation_metrics", meta={"duration_us": 500_000}),
        event("fx_graph_cache_miss", payload="{}"),
        event("fx_graph_cache_hit", payload="{}"),
        event("create_symbol", meta={"symbol": "s0", "source": "L['x'].size()[0]", "val": "6"}),
        failed,
        metrics(compile_id="2/0", has_guarded_code=False),
        metrics(compile_id="3/0"),
        event("dynamo_start", "4/0", meta={"stack": [{"name": "forward", "filename": USER, "line": 2}]}, attempt=1),
    ]
    run = build_run(events, [], files=Files(read=read))
    first = run.compilations[0]
    assert [each.status for each in run.compilations] == ["compiled", "failed", "skipped", "empty", "failed"]
    assert (first.seconds, first.backward_seconds, first.guard_latency) == (2.0, 0.5, 5e-5)
    assert (first.restarts, first.cache, first.dynamic) == (
        ("a break",),
        {"fx_graph": "miss"},
        ("s0: L['x'].size()[0]",),
    )
    assert run.compilations[1].failure == "Unsupported: no\nway"
    assert (run.compilations[4].attempts, run.compilations[4].function) == (2, 0)
    assert [each.cause for each in run.fallbacks] == ["graph break that Dynamo can't go on from", "skipped"]
    assert from_json(to_json(run)) == run


BREAK = """\
Graph break in user code at /home/me/net.py:4
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types
    ['str'].
  Hint: Avoid calling it.
  Hint: Please report an issue to PyTorch.

  Developer debug context: builtin print

 For more details about this graph break, please visit: https://example.org/gb0059.html

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: another one
  Hint: another one

User code traceback:
  File "/home/me/main.py", line 9, in <module>
    net(x)
  File "/home/me/net.py", line 4, in forward
    print(h)

Traceback (most recent call last):
  File "/opt/torch/_dynamo/symbolic_convert.py", line 1, in step
"""


def test_a_graph_break_is_told_once_for_each_compilation() -> None:
    told = [event("dynamo_graph_break_reason", compile_id, BREAK) for compile_id in ("0/0", "0/0", "0/1")]
    run = build_run([*told, metrics(), metrics(compile_id="0/1")], [], files=Files(read=read))
    assert [each.compile_id for each in run.breaks] == ["0/0", "0/1"]
    found = run.breaks[0]
    paths = [each.path for each in run.sources]
    assert found.place == (paths.index(USER), 4)
    assert found.reason == "Failed to trace builtin operator"
    assert found.explanation == (
        "Dynamo does not know how to trace builtin operator `print` with argument types ['str']."
    )
    assert found.hints == ("Avoid calling it.", "Please report an issue to PyTorch.")
    assert found.url == "https://example.org/gb0059.html"
    assert found.stack == ((paths.index("/home/me/main.py"), 9), found.place)
    assert "print" in found.advice


GUARDS = """\
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GLOBAL_STATE: ___check_global_state() against {"grad_mode":true}
| +- DEFAULT_DEVICE: utils_device.CURRENT_DEVICE == None        # _dynamo/output_graph.py:1122 in init_ambient_guards
| +- GuardManager: source=L['self'].n, accessed_by=GetAttrGuardAccessor(n), type=<class 'int'>
| | +- EQUALS_MATCH: L['self'].n == VALUE                       # h = self.up(x)  # me/net.py:3 in forward
+- LAMBDA_GUARD: 2 <= L['x'].size()[0]  # h = self.up(x)  # nn/modules/linear.py:134 in forward (explanation)
"""


def test_a_recompilation_stands_in_the_program_where_its_guard_is_of_a_library() -> None:
    stack = f'User stack trace:\n  File "{LIBRARY}", line 134, in forward'
    events = [metrics(), event("recompile_reasons", "0/1", json.dumps([f"0/0: n == 1\n{stack}"]))]
    run = build_run([*events, metrics(compile_id="0/1")], [], files=Files(read=read))
    (recompile,) = run.recompiles
    paths = [each.path for each in run.sources]
    assert recompile.failed[0].place == (paths.index(LIBRARY), 134)
    assert recompile.place == (paths.index(USER), run.functions[0].first_line)


def test_a_recompilation_is_told_in_words_with_both_values_and_the_line() -> None:
    reasons = [
        "0/0: self.n == 1     # h = self.up(x)  # me/net.py:3 in forward\nUser stack trace:\n"
        f'  File "{USER}", line 3, in forward\n    h = self.up(x)\n  File "{LIBRARY}", line 134, in forward'
    ]
    events = [
        event("dynamo_cpp_guards_str", payload=GUARDS.replace("VALUE", "1")),
        metrics(),
        event("recompile_reasons", "0/1", json.dumps(reasons)),
        event("dynamo_cpp_guards_str", "0/1", GUARDS.replace("VALUE", "2")),
        metrics(compile_id="0/1"),
    ]
    internals = "/opt/lib/python3.11/site-packages/torch/_dynamo/output_graph.py"
    run = build_run(events, [], files=Files(read=read, names={0: internals}))
    (recompile,) = run.recompiles
    (failed,) = recompile.failed
    assert (recompile.compile_id, recompile.function, failed.entry) == ("0/1", 0, "0/0")
    assert (failed.text, failed.before, failed.now) == ("self.n == 1", "1", "2")
    assert "2" in failed.words
    user = [each.path for each in run.sources].index(USER)
    assert failed.place == (user, 3)
    assert [(each.kind, each.source) for each in run.compilations[0].guards] == [
        ("GLOBAL_STATE", ""),
        ("DEFAULT_DEVICE", ""),
        ("EQUALS_MATCH", "L['self'].n"),
        ("LAMBDA_GUARD", "L['x'].size()[0]"),
    ]
    assert [each.place for each in run.compilations[0].guards[1:3]] == [None, (user, 3)]
    assert not [each.path for each in run.sources if "output_graph" in each.path]
    assert run.compilations[0].guard_failures == 1


@pytest.mark.parametrize("changed", ["grad_mode ", "grad_mode default_dtype ", "grad_mode default_dtype num_threads "])
def test_a_recompilation_for_changed_global_state_is_explained(changed: str) -> None:
    reasons = json.dumps([f"0/0: GLOBAL_STATE changed: {changed}"])
    events = [metrics(), event("recompile_reasons", "0/1", reasons), metrics(compile_id="0/1")]
    (recompile,) = build_run(events, [], files=Files(read=read)).recompiles
    assert "grad mode has changed since" in recompile.failed[0].words


def test_what_is_new_in_a_call_is_its_cause_and_not_what_the_latest_entry_was_made_for() -> None:
    dtype = "tensor 'x' dtype mismatch. expected {}, actual {}"
    size = "tensor 'x' size mismatch at index 0. expected 4, actual 6"
    events = [metrics()]
    for number, reasons in enumerate([[dtype.format("Float", "Double")], [dtype.format("Double", "Float"), size]], 1):
        told = [f"0/{number - 1 - place}: {reason}" for place, reason in enumerate(reasons)]
        events += [event("recompile_reasons", f"0/{number}", json.dumps(told)), metrics(compile_id=f"0/{number}")]
    run = build_run(events, [], files=Files(read=read))
    assert [each.failed[0].words.split(",")[0] for each in run.recompiles] == [
        "x has dtype float64",
        "x has size 6 in dimension 0",
    ]
    assert [each.entry for each in run.recompiles[1].failed] == ["0/0", "0/1"]


def recompiled(guards: List[str], reasons: List[str], number: int) -> List[Event]:
    """A compilation of 0/``number`` with these guards, after these failed, of the latest entry first."""
    told = [f"0/{number - 1 - place}: {reason}" for place, reason in enumerate(reasons)]
    tree = "".join(f"| +- {guard}\n" for guard in guards)
    events = [event("recompile_reasons", f"0/{number}", json.dumps(told))] if reasons else []
    return [*events, event("dynamo_cpp_guards_str", f"0/{number}", tree), metrics(compile_id=f"0/{number}")]


def test_none_that_was_compiled_for_before_is_not_the_cause_of_a_recompilation() -> None:
    none, class_of = "NONE_MATCH: L['past'] is None", "TYPE_MATCH: ___check_type_id(L['past'], 7), type=<class 'list'>"
    size = "tensor 'tokens' size mismatch at index 1. expected 5, actual 9"
    events = [
        *recompiled([none], [], 0),
        *recompiled([class_of], ["past is None"], 1),
        *recompiled([none], ["___check_type_id(past, 7), type=<class 'list'>", size], 2),
    ]
    run = build_run(events, [], files=Files(read=read))
    assert [(each.entry, each.words) for each in run.recompiles[1].failed] == [
        ("0/0", "tokens has size 9 in dimension 1, and was compiled for 5"),
        ("0/1", "past is None, and was compiled for an object of class list"),
    ]
    assert [each.checked for each in run.recompiles[1].failed][1] == run.recompiles[0].failed[0].checked == "past"
    assert "mark_dynamic(tokens, 1)" in run.recompiles[1].advice


def test_a_class_that_was_compiled_for_is_no_news_where_the_other_entry_was_for_none() -> None:
    none, class_of = "NONE_MATCH: L['past'] is None", "TYPE_MATCH: ___check_type_id(L['past'], 7), type=<class 'list'>"
    stride = "tensor 'past[0]' stride mismatch at index 1. expected 5, actual 9"
    events = [
        *recompiled([class_of], [], 0),
        *recompiled([none], ["___check_type_id(past, 7), type=<class 'list'>"], 1),
        *recompiled([class_of], ["past is None", stride], 2),
    ]
    run = build_run(events, [], files=Files(read=read))
    assert [each.words.split(",")[0] for each in run.recompiles[1].failed] == [
        "past[0] has stride 9 in dimension 1",
        "past is not None",
    ]


def test_the_cause_is_what_an_entry_would_fit_without() -> None:
    """Of 0/1 more than the aliasing fails: without it, the call would not have fitted either."""
    factor, aliased = "EQUALS_MATCH: L['scaled'].factor == {}", 'Duplicate tensors found: ["x", "parts[0]"]'
    events = [
        *recompiled([factor.format(0.5)], [], 0),
        *recompiled([factor.format(0.5)], ["tensor 'x' size mismatch at index 0. expected 4, actual 6"], 1),
        *recompiled([factor.format(0.25)], [aliased, "scaled.factor == 0.5"], 2),
    ]
    run = build_run(events, [], files=Files(read=read))
    assert [each.checked for each in run.recompiles[1].failed] == ["scaled.factor", "the same tensor twice"]


def test_advice_says_what_else_an_entry_was_compiled_for_and_what_avoids_it() -> None:
    number, scale = "EQUALS_MATCH: L['number'] == {}", "EQUALS_MATCH: G['settings'].scale == {}"
    size = "tensor 'x' size mismatch at index 0. expected 4, actual 5"
    events = [
        *recompiled([number.format(0.0), scale.format(1.0)], [], 0),
        *recompiled([number.format(1.0), scale.format(2.0)], [size], 1),
    ]
    [recompile] = build_run(events, [], files=Files(read=read)).recompiles
    assert "mark_dynamic(x, 0)" in recompile.advice
    more = recompile.advice.partition("more has changed since that entry was compiled: ")[2]
    assert more.startswith("number (its value is a constant of the compiled code: pass it as a tensor")
    assert "; settings.scale (its value is a constant of the compiled code: set it once" in more


def test_what_else_an_entry_was_compiled_for_has_the_words_of_a_guard_that_failed() -> None:
    both = "EQUALS_MATCH: L['d'].size()[1] == {}", "DICT_LENGTH: len(L['e']) == {}"
    size = "tensor 'x' size mismatch at index 0. expected 4, actual 5"
    events = [
        *recompiled([each.format(2) for each in both], [], 0),
        *recompiled([each.format(3) for each in both], [size], 1),
    ]
    [recompile] = build_run(events, [], files=Files(read=read)).recompiles
    assert "mark_dynamic(x, 0) and torch._dynamo.mark_dynamic(d, 1)" in recompile.advice
    assert "; more has changed since that entry was compiled: length of e (" in recompile.advice


def test_the_length_of_a_call_is_known_from_what_was_compiled_for_it() -> None:
    """PyTorch's reasons have the length that an entry was compiled for only."""
    empty, two, factor = "DICT_LENGTH: not L['d']", "DICT_LENGTH: len(L['d']) == 2", "n == 1.0"
    events = [
        *recompiled([empty], [], 0),
        *recompiled([two], ["not d"], 1),
        *recompiled([empty], ["len(d) == 2", factor], 2),
        *recompiled([two], ["not d", factor, "not d"], 3),
    ]
    first, second, third = build_run(events, [], files=Files(read=read)).recompiles
    assert first.failed[0].words == "d is not empty (2 items), and was compiled for an empty one"
    assert (first.failed[0].before, first.failed[0].now) == ("empty", "2")
    known = next(each for each in second.failed if each.checked == "length of d")
    assert known.words == "d is empty, and was compiled for 2"
    assert (known.before, known.now) == ("2", "empty")
    assert second.failed[0].checked == third.failed[0].checked == "n"  # both lengths have been compiled for


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300])
def test_what_nobody_measured_is_no_time(number: float) -> None:
    """As in another's log. Else the order of findings is arbitrary, and the manifest can't be read."""
    marks = [event("chromium_event", meta={"ph": ph, "name": "x", "ts": ts}) for ph, ts in (("B", 1e6), ("E", number))]
    events = [metrics(), *marks, metrics(compile_id="0/1", duration_us=number, start_time_us=number)]
    run = build_run(events, [], files=Files(read=read))
    assert [each.seconds for each in run.compilations] == [2.0, None]
    assert from_json(to_json(run)).phases == run.phases


def tensor(size: str) -> str:
    return "TENSOR_MATCH: check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, device=None, " + (
        f"requires_grad=False, size={size}, stride=[1, 1])"
    )


def test_of_several_sizes_that_an_entry_requires_the_one_that_is_enough_is_the_cause() -> None:
    size = "tensor 'x' size mismatch at index {}. expected {}, actual {}"
    symbols = [{"source": f"L['x'].size()[{at}]", "val": value} for at, value in enumerate(("5", "7"))]
    events = [
        *recompiled([tensor("[2, 3]")], [], 0),
        *recompiled([tensor("[None, 3]")], [size.format(0, 2, 3)], 1),
        *recompiled([tensor("[1, 3]")], ["2 <= x.size()[0]", size.format(0, 2, 1)], 2),
        *recompiled([tensor("[None, None]")], [size.format(0, 1, 5), size.format(1, 3, 7), size.format(0, 2, 5)], 3),
        *(event("create_symbol", "0/3", meta=each) for each in symbols),
    ]
    recompile = build_run(events, [], files=Files(read=read)).recompiles[-1]
    assert [each.entry for each in recompile.failed] == ["0/1", "0/2", "0/0"]
    assert "mark_dynamic(x, 1)" in recompile.advice
    assert "other values" not in recompile.advice


@pytest.mark.parametrize(("size", "advice"), [("1", "pad to 2 or more"), ("600", "the code branches on")])
def test_a_range_of_sizes_is_explained_by_the_size_that_is_outside_of_it(size: str, advice: str) -> None:
    mismatch = f"tensor 'x' size mismatch at index 0. expected 4, actual {size}"
    events = [
        *recompiled([tensor("[4, 3]")], [], 0),
        *recompiled([tensor("[None, 3]")], [mismatch.replace(size, "6")], 1),
        *recompiled([tensor(f"[{size}, 3]")], ["2 <= x.size()[0] <= 512", mismatch], 2),
    ]
    recompile = build_run(events, [], files=Files(read=read)).recompiles[-1]
    assert recompile.failed[0].words == f"x has size {size} in dimension 0, and was compiled for 2 to 512"
    assert advice in recompile.advice.lower()


@pytest.mark.parametrize("relation", ["x.size()[0] <= y.size()[0]", "x.stride()[0] == x.size()[1]", "x.size()[0] <= n"])
def test_a_relation_of_several_values_is_not_explained_by_one_of_them(relation: str) -> None:
    events = [
        *recompiled([tensor("[None, 3]")], [], 0),
        *recompiled([tensor("[9, 3]")], [relation], 1),
    ]
    recompile = build_run(events, [], files=Files(read=read)).recompiles[-1]
    assert recompile.failed[0].words == f"it was compiled for {relation}, which does not hold"


def test_a_size_of_one_dimension_is_news_where_another_dimension_had_it() -> None:
    size = "tensor 'x' size mismatch at index {}. expected {}, actual {}"
    dtype = "tensor 'y' dtype mismatch. expected {}, actual {}"
    events = [
        *recompiled([], [], 0),
        *recompiled([], [size.format(0, 2, 4)], 1),
        *recompiled([], [dtype.format("Float", "Double")] * 2, 2),
        *recompiled([], [dtype.format("Double", "Float"), size.format(1, 3, 4), size.format(1, 3, 4)], 3),
    ]
    recompile = build_run(events, [], files=Files(read=read)).recompiles[-1]
    assert recompile.cause == "size"


@pytest.mark.parametrize(
    ("guard", "reason", "now"),
    [
        ("LENGTH_CHECK: len(L['l']) == {}", "len(l) == {}", "3"),
        ("EQUALS_MATCH: list(dict.keys(L['d']))[0] == {}", "list(dict.keys(d))[0] == {}", "'b'"),
        ("EQUALS_MATCH: L['o'].x == {}", "o.x == {}", "4"),
        (tensor("{}"), "tensor 'x' rank mismatch. expected 2, actual 1", "[7]"),
        ("LAMBDA_GUARD: L['x'].stride()[0] == {}", "n == 2", "L['x'].size()[1]"),
    ],
)
def test_what_has_failed_is_not_said_to_fail_too(guard: str, reason: str, now: str) -> None:
    before = {"'b'": "'a'", "[7]": "[2, 3]"}.get(now, "2")
    events = [*recompiled([guard.format(before)], [], 0), *recompiled([guard.format(now)], [reason.format(before)], 1)]
    [recompile] = build_run(events, [], files=Files(read=read)).recompiles
    assert "too" not in recompile.advice


def test_of_changed_settings_the_fewest_are_the_cause() -> None:
    both, one = "GLOBAL_STATE changed: grad_mode autocast(cpu)_enabled", "GLOBAL_STATE changed: autocast(cpu)_enabled"
    events = [
        *recompiled([], [], 0),
        *recompiled([], ["GLOBAL_STATE changed: grad_mode"], 1),
        *recompiled([], [both, one], 2),
    ]
    recompile = build_run(events, [], files=Files(read=read)).recompiles[-1]
    assert [each.entry for each in recompile.failed] == ["0/0", "0/1"]
    assert "no_grad" not in recompile.advice


def test_an_object_that_is_gone_has_a_name_and_advice_that_fits() -> None:
    gone = "Cache line invalidated because L['___stack0'] got deallocated"
    resume = "torch_dynamo_resume_in_forward_at_4"
    events = [metrics(resume, 4), event("recompile_reasons", "0/1", json.dumps([f"0/0: {gone}"]))]
    [recompile] = build_run([*events, metrics(resume, 4, "0/1")], [], files=Files(read=read)).recompiles
    assert recompile.failed[0].words.startswith(
        "stack value 0 at the graph break that this code was compiled for is gone"
    )
    assert recompile.failed[0].checked == "stack value 0 at the graph break is gone"
    assert "remove the graph break" in recompile.advice


def test_code_that_dynamo_made_is_no_caller() -> None:
    dumped = "/d/__transformed_code_0_for_train.py"
    lines = [f'  File "{path}", line {line}, in f\n    x\n' for path, line in ((USER, 5), (dumped, 5), (USER, 4))]
    payload = f"Reason\n\nUser code traceback:\n{''.join(lines)}"
    [found] = build_run(
        [event("dynamo_graph_break_reason", payload=payload), metrics()], [], files=Files(read=read)
    ).breaks
    assert [place[1] for place in found.stack] == [5, 4]


def test_ids_that_a_reset_gives_out_again_are_told_apart() -> None:
    again = event("recompile_reasons", "0/1", "0/0: L['n'] == 1")
    events = [event("dynamo_start"), metrics(), event("dynamo_start"), event("aot_joint_graph"), metrics(), again]
    ids = [each.compile_id for each in distinguished(events)]
    assert ids == ["0/0", "0/0", "0/0#2", "0/0#2", "0/0#2", "0/1#2"]
    run = build_run(distinguished([*events, metrics(compile_id="0/1")]), [], files=Files(read=read))
    assert run.recompiles[0].failed[0].entry == "0/0#2"


def tracebacks() -> Dict[str, str]:
    outer = f'  File "{USER}", line 3, in forward\n    h = self.up(x)\n'
    return {"linear": f'{outer}  File "{LIBRARY}", line 134, in forward\n    return F.linear(...)\n'}


def graph(stage: str = "Captured_Graph", text: str = GRAPH) -> Artifact:
    return Artifact(
        id=stage, kind="graph", title=f"{stage} of __compiled_fn_1", compile_id="0/0", stage=stage, text=text
    )


def test_lines_of_a_graph_are_linked_by_the_whole_stack_where_it_is_known_and_by_comments_elsewhere() -> None:
    report = event("dynamo_output_graph", payload=GRAPH)
    noted = node_stacks_event(report, "Captured_Graph", tracebacks())
    run = build_run([report, noted, metrics()], [graph()], files=Files(read=read))
    paths = [each.path for each in run.sources]
    links = {link.names[0]: link for link in run.artifacts[0].links}
    assert links["linear"].places == ((paths.index(USER), 3), (paths.index(LIBRARY), 134))
    assert (links["linear"].first, links["linear"].last) == (5, 6)
    assert links["y"].places == ((paths.index(USER), 5),)
    assert "l_x_" not in links
    only_comments = build_run([report, metrics()], [graph()], files=Files(read=read, names={0: LIBRARY}))
    assert [each.path for each in only_comments.sources if each.library] == [LIBRARY]
    assert len(only_comments.artifacts[0].links[0].places) == 1


def test_another_stage_gets_the_whole_stack_of_a_comment_that_names_its_innermost_frame() -> None:
    report = event("dynamo_output_graph", payload=GRAPH)
    noted = node_stacks_event(report, "Captured_Graph", tracebacks())
    forward = GRAPH.replace("linear:", "addmm:").replace("linear * 2;  linear", "addmm * 2;  addmm")
    run = build_run([report, noted, metrics()], [graph(), graph("Forward_graph", forward)], files=Files(read=read))
    assert run.artifacts[1].links[0].names == ("addmm",)
    assert run.artifacts[1].links[0].places == run.artifacts[0].links[0].places


MODULE = """\
# AOT ID: ['0_forward']
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()


cpp_fused_mul_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
extern "C"  void  kernel(const float* in_ptr0)
{
}
''')


async_compile.wait(globals())

class Runner:
    def call(self, args):
        buf0 = empty_strided_cpu((4, ), (1, ), torch.float32)
        # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]
        extern_kernels.addmm(primals_1, primals_2, out=buf0)
        cpp_fused_mul_0(buf0)
        cpp_fused_mul_0(buf0)
        return (buf0, )

runner = Runner(partitions=[])
call = runner.call


def get_args():
    cpp_fused_mul_0(buf0)
"""


def test_kernels_of_a_generated_module_have_the_lines_of_the_nodes_that_they_compute() -> None:
    report, code = event("dynamo_output_graph", payload=GRAPH), event("inductor_output_code", payload=MODULE)
    one, two = (f'  File "{USER}", line {line}, in forward\n' for line in (5, 3))
    launches = [
        ("extern_kernels.addmm", ["linear"], []),
        ("cpp_fused_mul_0", ["y"], [one]),
        ("cpp_fused_mul_0", ["z"], [two]),
    ]
    events = [
        report,
        node_stacks_event(report, "Captured_Graph", tracebacks()),
        code,
        kernel_launches_event(code, launches),
        metrics(),
    ]
    module = Artifact("kernel", "kernels", "kernels of __compiled_fn_1", "0/0", text=MODULE, backward=False)
    run = build_run(events, [graph(), module], files=Files(read=read))
    addmm, kernel = run.kernels
    paths = [each.path for each in run.sources]
    assert (addmm.name, addmm.extern, addmm.calls, addmm.nodes) == ("extern_kernels.addmm", True, (19,), ("linear",))
    assert addmm.places == ((paths.index(USER), 3), (paths.index(LIBRARY), 134))
    assert (kernel.first, kernel.last, kernel.calls) == (6, 10, (20, 21))
    assert kernel.places == ((paths.index(USER), 5), (paths.index(USER), 3))
    assert kernel.nodes == ("y", "z")
    by_line = {(link.first, link.last): link.places for link in run.artifacts[1].links}
    assert by_line[20, 20] == ((paths.index(USER), 5),)
    assert by_line[21, 21] == ((paths.index(USER), 3),)
    assert by_line[6, 10] == kernel.places


def test_without_notes_the_comments_in_a_generated_module_name_its_nodes() -> None:
    events = [event("dynamo_output_graph", payload=GRAPH), event("inductor_output_code", payload=MODULE), metrics()]
    run = build_run(events, files=Files(read=read, names={0: LIBRARY}))
    assert [(each.kind, each.stage, each.backward) for each in run.artifacts] == [
        ("graph", "Captured_Graph", None),
        ("kernels", "", False),
    ]
    addmm, fused = run.kernels
    assert [run.sources[source].path for source, _ in addmm.places] == [LIBRARY]
    assert fused.places == ()
    counted = [run.totals[name] for name in ("kernels", "library_kernels", "kernels_with_a_line")]
    assert counted == [1, 1, 1]


@pytest.mark.parametrize("skipped", [["2/0"], ["2/0", "3/0"], [], ["1/1"]])
def test_a_side_of_a_branch_without_transformed_code_is_a_function_of_its_own(skipped: List[str]) -> None:
    text = "def f(x):\n    if out:\n        return __resume_1(out)\n    return __resume_2(out)\n"
    artifact = Artifact("t", "transformed", "transformed code of forward", "0/0", text=text)
    resume = ("torch_dynamo_resume_in_forward_at_4", USER, 4)
    resumes = {"__resume_1": (resume, "1/0"), "__resume_2": (resume, f"{UNCOMPILED}77")}
    caller = TransformedFact("0/0", ("forward", USER, 2), "Net.forward", "t", resumes=resumes)
    called = TransformedFact("1/0", resume, "", "u")
    events = [metrics(), *(metrics(resume[0], 4, each) for each in ("1/0", *skipped))]
    run = build_run(events, [artifact], files=Files(read=read), facts=Facts(transformed=[caller, called]))
    one, other = (call.function for call in run.compilations[0].calls)
    assert one != other
    functions = {each.compile_id: each.function for each in run.compilations}
    assert functions["1/0"] == one
    if skipped == ["1/1"]:  # another entry of the side that has code, which failed at the limit, say
        assert functions["1/1"] == one
        return
    sides = [functions[each] == other for each in skipped]
    assert sides == ([True] if len(skipped) == 1 else [False] * len(skipped))  # which of two it is nobody knows
    assert all(run.root(each) == 0 for each in range(len(run.functions)))


def test_transformed_code_is_linked_to_what_it_calls() -> None:
    text = "def f(self, x):\n    out = __compiled_fn_1(x)\n    print(out)\n    return __resume_at_20_2(out)\n"
    artifact = Artifact("t", "transformed", "transformed code of forward", "0/0", text=text)
    resume = ("torch_dynamo_resume_in_forward_at_4", USER, 4)
    fact = TransformedFact(
        compile_id="0/0",
        function=("forward", USER, 2),
        qualified_name="Net.forward",
        artifact="t",
        verdict="equivalent",
        graphs=("__compiled_fn_1",),
        resumes={"__resume_at_20_2": (resume, "1/0")},
        runs=3,
        lines={3: 4},
    )
    events = [event("dynamo_output_graph", payload=GRAPH), metrics(), metrics(resume[0], 4, "1/0")]
    run = build_run(
        events,
        [graph(), artifact],
        files=Files(read=read),
        facts=Facts(transformed=[fact], graphs={"0/0": "__compiled_fn_1"}),
    )
    first = run.compilations[0]
    assert (first.verdict, first.runs, first.transformed, first.graph) == ("equivalent", 3, "t", "__compiled_fn_1")
    assert [(call.graph, call.function, call.line) for call in first.calls] == [
        ("__compiled_fn_1", None, 2),
        (None, 1, 4),
    ]
    user = [each.path for each in run.sources].index(USER)
    links = {link.first: link for link in run.artifacts[1].links}
    assert (user, 5) in links[2].places
    assert links[3].places == ((user, 4),)
    assert (links[4].places, links[4].names) == (((user, 4),), ("__resume_at_20_2",))


def chromium(phase: str, name: str, seconds: float, compile_id: Optional[str] = "0/0") -> Event:
    return event(
        "chromium_event", compile_id, json.dumps({"name": name, "ph": phase, "ts": seconds * 1e6, "pid": 0, "tid": 0})
    )


def test_phases_are_nested_and_a_lost_end_is_made_up_for() -> None:
    events = [
        chromium("B", "dynamo", 1000.0),
        chromium("B", "backend_compile", 1001.0),
        chromium("B", "dynamo", 1001.5, "1/0"),
        chromium("B", "fails", 1002.0),
        chromium("E", "backend_compile", 1003.0),
        chromium("i", "an_instant", 1003.0),
        chromium("E", "dynamo", 1004.0),
        chromium("E", "dynamo", 1004.5, "1/0"),
    ]
    run = build_run([*events, metrics()], [], files=Files(read=read), origin=Recorder(started=999.0))
    found = [
        (each.compile_id, each.name, round(each.start, 3), round(each.seconds, 3), each.parent) for each in run.phases
    ]
    assert found == [
        ("0/0", "dynamo", 1.0, 4.0, None),
        ("0/0", "backend_compile", 2.0, 2.0, 0),
        ("1/0", "dynamo", 2.5, 3.0, None),
        ("0/0", "fails", 3.0, 1.0, 1),
    ]


def test_a_phase_without_a_compile_id_encloses_those_of_the_compilation_in_it() -> None:
    """``aot_compile`` reports ``fullgraph_capture`` before there is a compile id: its time is not all its own."""
    events = [
        chromium("B", "fullgraph_capture", 1000.0, None),
        chromium("B", "inductor_compile", 1001.0),
        chromium("B", "GraphLowering.run", 1002.0),
        chromium("E", "GraphLowering.run", 1003.0),
        chromium("E", "inductor_compile", 1009.0),
        chromium("B", "of_another_thread", 1009.0, "1/0"),
        chromium("E", "fullgraph_capture", 1010.0, None),
        chromium("E", "of_another_thread", 1012.0, "1/0"),
    ]
    run = build_run([*events, metrics()], [], files=Files(read=read), origin=Recorder(started=999.0))
    assert [(each.name, each.parent) for each in run.phases] == [
        ("fullgraph_capture", None),
        ("inductor_compile", 0),
        ("GraphLowering.run", 1),
        ("of_another_thread", None),
    ]
    assert [round(seconds, 3) for seconds in own_seconds(run)] == [2.0, 7.0, 1.0, 3.0]


def test_decisions_about_shapes_have_both_stacks() -> None:
    user = [{"filename": 1, "line": 3, "name": "forward"}, {"filename": 2, "line": 134, "name": "forward"}]
    torchs = [{"filename": 3, "line": 60 + n, "name": f"f{n}"} for n in range(20)]
    torchs.append({"filename": 4, "line": 1, "name": "trace_structured"})  # depyf hands the record over
    names = {1: USER, 2: LIBRARY, 3: "/venv/lib/python3.11/site-packages/torch/fx/symbolic_shapes.py"}
    names[4] = os.path.join(FOLDER, "hooks.py")
    meta = {"expr": "Eq(s0, 4)", "user_stack": user, "stack": torchs}
    found = build_run(
        [
            event(
                "create_symbol", meta={"symbol": "s0", "source": "L['x'].size()[0]", "val": "4", "vr": "[2, int_oo]"}
            ),
            event("guard_added_fast", meta=meta, attempt=1),
            event("guard_added_fast", meta=meta, attempt=1),
            event("symbolic_shape_specialization", meta={"symbol": "s0", "value": "4", "sources": None}, attempt=1),
            event("guard_added_fast", "1/0", meta={"expr": ["odd"], "user_stack": "odd", "stack": [None]}),
            metrics(),
        ],
        files=Files(names=names, read=read),
    )
    assert [(each.compile_id, each.kind, each.text) for each in found.shapes] == [
        ("0/0", "guard", "Eq(s0, 4)"),
        ("0/0", "specialised", "s0 is 4 in this graph"),
        ("1/0", "guard", "['odd']"),
    ]
    own = [source.path for source in found.sources].index(USER)
    assert found.shapes[0].stack == ((own, 3),)
    assert LIBRARY not in [source.path for source in found.sources]
    assert found.shapes[0].torch_stack[-1] == "torch/fx/symbolic_shapes.py:79 in f19"
    assert len(found.shapes[0].torch_stack) == 12
    assert from_json(to_json(found)).shapes == found.shapes


def test_a_compilation_has_the_stack_of_its_caller() -> None:
    frames = [
        {"filename": 1, "line": 5, "name": "<module>"},
        {"filename": 2, "line": 9, "name": "_call"},
        {"filename": 1, "line": 2, "name": "forward"},
    ]
    start = event("dynamo_start", meta={"stack": frames})
    found = build_run([start, metrics()], files=Files(names={1: USER, 2: LIBRARY}, read=read))
    own = [source.path for source in found.sources].index(USER)
    assert found.compilations[0].callers == ((own, 5),)


def test_innermost_calls_that_pytorch_leaves_out_come_from_other_stacks_of_the_compilation() -> None:
    """PyTorch 2.13 leaves two frames too many out of the stack at the start, the inner ones."""
    dynamo = "/x/site-packages/torch/_dynamo/convert_frame.py"
    outer, inner = ({"filename": USER, "line": line, "name": "f"} for line in (9, 8))
    compiled = {"filename": USER, "line": 2, "name": "forward"}
    start = event("dynamo_start", meta={"stack": [outer, compiled]})
    whole = [outer, inner, {"filename": dynamo, "line": 1, "name": "_compile"}, {**inner, "line": 7}]
    symbol = event("create_symbol", meta={"symbol": "s0", "val": "4", "vr": "[2, 9]", "stack": whole})
    lines = ((9, "f"), (8, "f"), (3, "forward"))
    trace = "".join(f'  File "{USER}", line {line}, in {name}\n    x()\n' for line, name in lines)
    broken = event("dynamo_graph_break_reason", payload=f"Reason\nUser code traceback:\n{trace}")
    session = event("depyf_call_site", meta={"stack": [outer, inner]})
    for more in (symbol, broken, session):
        found = build_run([start, more, metrics()], files=Files(read=read))
        assert [line for _, line in found.compilations[0].callers] == [9, 8], more.name
    found = build_run([start, broken, metrics()])  # as from a log, on a machine without the program's files
    assert [line for _, line in found.compilations[0].callers] == [9, 8]
    other = event("create_symbol", meta={"symbol": "s0", "val": "4", "vr": "[2, 9]", "stack": whole[1:]})
    found = build_run([start, other, metrics()], files=Files(read=read))
    assert [line for _, line in found.compilations[0].callers] == [9]  # another way led to that


def test_every_text_of_a_log_is_an_artifact() -> None:
    texts = ["fx_graph_runnable", "inductor_collective_schedule", "dynamo_side_effects", "fx_graph_cache_miss"]
    found = build_run([*(event(name, payload=f"text of {name}") for name in texts), metrics()])
    assert [(each.kind, each.stage, each.text) for each in found.artifacts] == [
        ("note", name, f"text of {name}") for name in texts
    ]


def test_frames_of_depyf_run_and_of_its_script_are_no_callers() -> None:
    own = os.path.join(os.path.dirname(depyf.__file__), "running", "program.py")
    script = "/home/me/bin/depyf"
    traceback = "".join(
        f'  File "{file}", line {line}, in {name}\n    x()\n'
        for file, line, name in ((script, 8, "<module>"), (own, 5, "run"), (USER, 3, "forward"))
    )
    stack = [{"filename": file, "line": line, "name": "f"} for file, line in ((1, 8), (2, 5), (3, 9), (3, 2))]
    found = build_run(
        [
            event("dynamo_start", meta={"stack": stack}),
            event("dynamo_graph_break_reason", payload=f"Reason\nUser code traceback:\n{traceback}"),
            metrics(),
        ],
        files=Files(names={1: script, 2: own, 3: USER}, read=read),
    )
    assert [(found.sources[at].path, line) for at, line in found.breaks[0].stack] == [(USER, 3)]
    assert [(found.sources[at].path, line) for at, line in found.compilations[0].callers] == [(USER, 9)]
