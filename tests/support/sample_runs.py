"""Runs made by hand, rich enough to show everything that a page can show, and one full of hostile texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, List, Optional, Tuple

from run_builder import Op, RunBuilder

from depyf.report.model.memory import HeldTensor, Memory
from depyf.report.model.run import (
    Artifact,
    Call,
    EntryGuard,
    FailedEntryGuard,
    Fallback,
    Finding,
    Function,
    GraphBreak,
    ModulePart,
    Recompile,
    Run,
    ShapeEvent,
    SourceFile,
)

TextOf = Callable[[Artifact], Optional[str]]

PROGRAM = '''\
"""A training step with five graph breaks, and a function that is compiled seven times."""

import torch


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(16, 16)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        return h + x


def train_step(block, x, target):
    h = block(x)
    print("step", h.shape)
    h = h * torch.sigmoid(h)
    if h.sum() < 0:
        h = -h
    scale = h.abs().max().item()
    h = h / scale
    log.append(float(scale))
    loss = (h - target).square().mean()
    torch._dynamo.graph_break()
    weighted = loss * 0.5 + h.std()
    time.sleep(0)
    return weighted.exp()


def scaled(x, factor):
    y = x * factor
    y = y.cos() + y.sin()
    return y.softmax(-1)


def route(x, experts):
    gate = x.mean(-1)
    which = gate.argmax()
    if which > 1:
        return experts[0](x)
    return (
        experts[1](x)
        * gate
    )


log = []
'''


def sample_run() -> Tuple[Run, TextOf]:
    """5 breaks, 6 recompiles, a fallback, forward and backward, kernels; two functions that have resume functions."""
    b = RunBuilder(
        sources=[SourceFile("/home/me/train.py", PROGRAM), SourceFile("/venv/torch/nn/linear.py", None, True)]
    )
    step = b.place("def train_step")[1]
    ends = step + 14
    b.functions += [
        Function("train_step", "train_step", 0, step, ends, full_code="full_code_for_train_step_0.py"),
        *(
            Function(f"torch_dynamo_resume_in_train_step_at_{line}", "train_step", 0, step, ends, 0, line)
            for line in (b.place(code)[1] for code in BREAKS)
        ),
    ]
    scaled = len(b.functions)
    first = b.place("def scaled")[1]
    b.functions.append(Function("scaled", "scaled", 0, first, first + 3))
    route = len(b.functions)
    first = b.place("def route")[1]
    b.functions.append(Function("route", "route", 0, first, first + 8))
    branch = b.place("if which > 1")[1]
    b.functions.append(
        Function(f"torch_dynamo_resume_in_route_at_{branch}", "route", 0, first, first + 8, route, branch)
    )
    _train_step(b)
    recompiles = _scaled(b, scaled)
    _route(b, route)
    b.artifact("full_code", "full_code_for_train_step_0.py", "def train_step(x):\n    pass\n", order=1)
    modules = (
        ModulePart("block", "Block", None, ("relu",)),
        ModulePart("block.hidden", "Linear", 0, ("permute", "addmm")),
    )
    b.artifacts[:] = [
        replace(each, modules=modules) if (each.compile_id, each.stage) == ("0/0", "AFTER_POST_GRAD") else each
        for each in b.artifacts
    ]
    tensors = HeldTensor("addmm", 32768, 4), HeldTensor("primals_1", 2048, 2, input=True)
    memory = Memory(40960, 5, 6144, tensors, tensors[:1], 32768)
    b.artifacts[:] = [
        replace(each, memory=memory) if (each.compile_id, each.stage) == ("0/0", "Forward_graph") else each
        for each in b.artifacts
    ]
    b.artifact("note", "eager_fallbacks_0.txt", "route: recompile limit\n", language="text")
    return b.run(
        depyf="1.0.0",
        torch="2.13.0",
        python="3.11.4",
        command=("train.py", "--epochs", "3"),
        started=1795330800.0,
        breaks=_breaks(b),
        recompiles=recompiles,
        fallbacks=(
            Fallback(
                route,
                "7/1",
                "the recompile limit (8) was hit, so all later calls of route run as plain Python",
                "recompile_limit reached",
                b.place("def route"),
                "Mark the size of x as dynamic, or raise torch._dynamo.config.recompile_limit.",
            ),
        ),
        findings=(
            Finding("route runs as plain Python", "It hit the recompile limit.", 1, b.place("def route"), "7/1"),
            Finding("5 graph breaks in train_step", "Each splits the graph.", 5, b.place("def train_step"), "0/0"),
            Finding("scaled was compiled 7 times", "factor is another number each time.", 6, b.place("def scaled")),
        ),
        notes=("The graphs of one compilation came from torch's caches.",),
        shapes=(
            ShapeEvent("6/4", "symbol", "s0 = x.size()[0], 64 here", "", (b.place("y = x * factor"),)),
            ShapeEvent(
                "6/4",
                "guard",
                "Eq(s0, 64)",
                "",
                (b.place("y.softmax"),),
                ("torch/fx/experimental/symbolic_shapes.py:6000 in evaluate_expr",),
            ),
            ShapeEvent("6/4", "specialised", "s0 is 64 in this graph", "x.view"),
        ),
        totals={"dynamo": 5.2, "inductor_compile": 3.3, "backend_compile": 4.1},
    )


BREAKS = {
    'print("step"': ("print() was called", "Move it out of the compiled function, or drop it."),
    "if h.sum() < 0": ("Data-dependent branching", "Use torch.where, or torch.cond."),
    ".max().item()": ("Tensor.item() on a value that is not known", "Set capture_scalar_outputs = True."),
    "graph_break()": ("torch._dynamo.graph_break() was called", "Remove the call."),
    "time.sleep(0)": ("Dynamo does not know how to trace time.sleep", "Move it out of the compiled function."),
}


def _breaks(b: RunBuilder) -> Tuple[GraphBreak, ...]:
    top = b.place("def train_step")
    return tuple(
        GraphBreak(
            f"{number}/0",
            b.place(code),
            reason,
            f"Dynamo can't put this into a graph: {reason}.",
            ("It may be supported in a newer PyTorch.",),
            "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0007.html",
            (top, b.place(code)),
            advice,
        )
        for number, (code, (reason, advice)) in enumerate(BREAKS.items())
    )


def _train_step(b: RunBuilder) -> None:
    call = b.place("h = block(x)")
    parts: List[List[Op]] = [
        [
            ("permute", "permute.default(arg0_1, [1, 0])", (call, b.place("torch.relu(self.hidden"))),
            ("addmm", "addmm.default(arg1_1, arg0_1, permute)", (call, b.place("torch.relu(self.hidden"))),
            ("relu", "relu.default(addmm)", (call, b.place("torch.relu(self.hidden"))),
            ("add", "add.Tensor(relu, arg0_1)", (call, b.place("return h + x"))),
        ],
        [
            ("sigmoid", "sigmoid.default(arg0_1)", (b.place("torch.sigmoid"),)),
            ("mul", "mul.Tensor(arg0_1, sigmoid)", (b.place("torch.sigmoid"),)),
            ("sum_1", "sum.default(mul)", (b.place("if h.sum() < 0"),)),
            ("lt", "lt.Scalar(sum_1, 0)", (b.place("if h.sum() < 0"),)),
        ],
        [
            ("abs_1", "abs.default(arg0_1)", (b.place("h.abs().max()"),)),
            ("amax", "amax.default(abs_1)", (b.place("h.abs().max()"),)),
        ],
        [
            ("div", "div.Tensor(arg0_1, arg1_1)", (b.place("h = h / scale"),)),
            ("sub", "sub.Tensor(div, arg1_1)", (b.place(".square().mean()"),)),
            ("pow_1", "pow.Tensor_Scalar(sub, 2)", (b.place(".square().mean()"),)),
            ("mean", "mean.default(pow_1)", (b.place(".square().mean()"),)),
        ],
        [
            ("mul", "mul.Tensor(arg0_1, 0.5)", (b.place("h.std()"),)),
            ("std", "std.correction(arg1_1)", (b.place("h.std()"),)),
            ("add", "add.Tensor(mul, std)", (b.place("h.std()"),)),
        ],
        [("exp", "exp.default(arg0_1)", (b.place("weighted.exp()"),))],
    ]
    for frame, ops in enumerate(parts):
        goes_on = [Call(None, frame + 1)] if frame < 5 else []
        if frame == 1:
            goes_on = [Call(None, 2), Call(None, 2)]
        place = ops[0][2][0]
        guards = [
            EntryGuard("TENSOR_MATCH", f"check_tensor(L['x{n}'], Tensor, float32)", f"L['x{n}']", place)
            for n in range(3)
        ]
        b.compilation(
            f"{frame}/0",
            frame,
            ops,
            calls=goes_on,
            guards=guards,
            seconds=0.9 - 0.1 * frame,
            backward=True,
            verdict="exact" if frame % 2 else "equivalent",
            runs=30,
            guard_failures=0,
        )


def _scaled(b: RunBuilder, function: int) -> Tuple[Recompile, ...]:
    multiply, wave, softmax = b.place("y = x * factor"), b.place("y.cos()"), b.place("y.softmax")
    ops: List[Op] = [
        ("mul", "mul.Tensor(arg0_1, 2)", (multiply,)),
        ("cos", "cos.default(mul)", (wave,)),
        ("sin", "sin.default(mul)", (wave,)),
        ("add", "add.Tensor(cos, sin)", (wave,)),
        ("softmax", "_softmax.default(add, -1, False)", (softmax,)),
    ]
    recompiles = []
    for number in range(7):
        guards = (
            EntryGuard("EQUALS_MATCH", f"L['factor'] == {number}", "L['factor']", multiply),
            EntryGuard("TENSOR_MATCH", "check_tensor(L['x'], Tensor, float32, size=[64, 16])", "L['x']", multiply),
        )
        b.compilation(
            f"6/{number}",
            function,
            ops,
            guards=guards,
            seconds=0.3,
            verdict="exact",
            runs=10 - number,
            guard_failures=6 - number,
            dynamic=("s0: L['x'].size()[0]",) if number > 3 else (),
            cache={"fx": "hit" if number else "miss"},
            attempts=2 if number == 3 else 1,
            restarts=("it was specialised again",) if number == 3 else (),
            metrics={"graph_op_count": 40 + number, "graph_node_count": 90, "graph_input_count": 2, "gc_time_us": 1500},
            callers=(b.place("log = []"), b.place("def route")) if number < 5 else (),
        )
        if number:
            failed = FailedEntryGuard(
                f"6/{number - 1}",
                f"L['factor'] == {number - 1}",
                f"factor was {number - 1} and is now {number}",
                str(number - 1),
                str(number),
                multiply,
            )
            recompiles.append(
                Recompile(
                    f"6/{number}", function, (failed,), "Pass factor as a tensor, or mark it as dynamic.", failed.place
                )
            )
    return tuple(recompiles)


def _route(b: RunBuilder, function: int) -> None:
    gate, which = b.place("gate = x.mean"), b.place("which = gate")
    b.compilation(
        "7/0",
        function,
        [("mean", "mean.dim(arg0_1, [-1])", (gate,)), ("argmax", "argmax.default(mean)", (which,))],
        calls=[Call(None, function + 1)],
        guards=[EntryGuard("TYPE_MATCH", "___check_type_id(L['experts'], 94)", "L['experts']", gate)],
        runs=4,
    )
    b.compilation(
        "8/0",
        function + 1,
        [("linear", "addmm.default(arg0_1)", (b.place("experts[1](x)"),))],
        verdict="unverified",
        verdict_reason="could not be decided in time",
    )


HOSTILE = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'><!-- & \u2028 é 漢字 \ud800 ]]>"
)


def hostile_run() -> Tuple[Run, TextOf]:
    """The sample, with texts in every place that want to be markup, are endless, or are not even valid Unicode."""
    run, text_of = sample_run()
    endless = "x" * 3000
    texts: Dict[str, Optional[str]] = {a.id: text_of(a) for a in run.artifacts}
    texts[run.artifacts[0].id] = f"# {HOSTILE}\nx = '{'é' * 30000}'\n" + (texts[run.artifacts[0].id] or "")
    source = replace(run.sources[0], path=f"/tmp/{HOSTILE}/{endless}.py", text=f"{PROGRAM}# {HOSTILE}\n# {endless}\n")
    run = replace(
        run,
        command=(HOSTILE, endless),
        torch=HOSTILE,
        sources=(source, *run.sources[1:]),
        functions=tuple(replace(f, name=f"{f.name}{HOSTILE}", qualified_name=endless) for f in run.functions),
        artifacts=tuple(
            replace(
                a,
                title=f"{a.title} {HOSTILE}",
                modules=tuple(replace(m, name=HOSTILE + endless, type=HOSTILE) for m in a.modules),
            )
            for a in run.artifacts
        ),
        kernels=tuple(replace(k, name=f"{k.name}{HOSTILE}{endless}") for k in run.kernels),
        shapes=tuple(
            replace(s, text=HOSTILE + endless, reason=HOSTILE, torch_stack=(HOSTILE + endless,)) for s in run.shapes
        ),
        breaks=tuple(
            replace(each, reason=HOSTILE + endless, hints=(HOSTILE,), url="javascript:window.pwned=3", advice=endless)
            for each in run.breaks
        ),
        recompiles=tuple(
            replace(
                r, failed=tuple(replace(f, words=HOSTILE, before=endless, text=HOSTILE + endless) for f in r.failed)
            )
            for r in run.recompiles
        ),
        fallbacks=tuple(replace(f, cause=HOSTILE, advice=endless) for f in run.fallbacks),
        findings=tuple(replace(f, title=HOSTILE, text=endless) for f in run.findings),
        notes=(HOSTILE, endless),
        phases=tuple(replace(p, name=p.name + HOSTILE) for p in run.phases),
        totals={HOSTILE: 1.0},
    )
    return run, lambda artifact: texts.get(artifact.id)
