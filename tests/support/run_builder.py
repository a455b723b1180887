"""Build runs by hand, for tests of their readers: texts of artifacts together with the links into them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from depyf.report.model.run import (
    Artifact,
    Call,
    Compilation,
    EntryGuard,
    Function,
    Link,
    ModuleKernel,
    Phase,
    Place,
    Run,
    SourceFile,
)

Op = Tuple[str, str, Tuple[Place, ...]]
"""A node of a graph: its name, what it computes, the user's lines (outermost call first)."""

STAGES = {
    "BEFORE_PRE_GRAD": 20,
    "AFTER_PRE_GRAD": 30,
    "Joint_graph": 40,
    "Forward_graph": 50,
    "Backward_graph": 60,
    "AFTER_POST_GRAD": 80,
}

_CPP = """\
cpp_fused_{name} = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{{
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(1024L); x0+=static_cast<int64_t>(16L))
    {{
        auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
        auto tmp1 = tmp0.abs(); // {name}
        tmp1.store(out_ptr0 + static_cast<int64_t>(x0));
    }}
}}
''')
"""


@dataclass
class RunBuilder:
    """Collects what a ``Run`` is made of. ``texts`` are the texts of the artifacts by id, as a dump would hold them."""

    sources: List[SourceFile] = field(default_factory=list)
    functions: List[Function] = field(default_factory=list)
    compilations: List[Compilation] = field(default_factory=list)
    artifacts: List[Artifact] = field(default_factory=list)
    kernels: List[ModuleKernel] = field(default_factory=list)
    phases: List[Phase] = field(default_factory=list)
    texts: Dict[str, str] = field(default_factory=dict)
    clock: float = 0.0

    def place(self, code: str, source: int = 0) -> Place:
        """The place of the first line of a source that holds ``code``."""
        lines = (self.sources[source].text or "").splitlines()
        return source, next(number for number, line in enumerate(lines, 1) if code in line)

    def run(self, **more: Any) -> Tuple[Run, Callable[[Artifact], Optional[str]]]:
        """The run of what was collected, with ``more`` fields, and the texts of its artifacts."""
        collected = ("sources", "functions", "compilations", "artifacts", "kernels", "phases")
        texts = dict(self.texts)
        return Run(**{name: tuple(getattr(self, name)) for name in collected}, **more), lambda each: texts.get(each.id)

    def artifact(self, kind: str, path: str, text: str, links: Sequence[Link] = (), **more: object) -> str:
        self.texts[path] = text
        self.artifacts.append(Artifact(path, kind, path, path=path, links=tuple(links), **more))  # type: ignore[arg-type]
        return path

    def graph(self, compile_id: str, name: str, stage: str, ops: Sequence[Op], backward: Optional[bool] = None) -> str:
        lines = [f"# {stage} of {name}, compile id {compile_id}", "import torch", "", ""]
        lines += ["class GraphModule(torch.nn.Module):", "    def forward(self, arg0_1, arg1_1):"]
        links = []
        shown: Optional[Place] = None
        for node, expression, places in ops:
            if places and places[-1] != shown:
                shown = places[-1]
                code = (self.sources[shown[0]].text or "").splitlines()[shown[1] - 1].strip()
                lines.append(f"        # File: {self.sources[shown[0]].path}:{shown[1]} in f, code: {code}")
            lines.append(f'        {node}: "f32[64, 16][16, 1]cpu" = torch.ops.aten.{expression}')
            links.append(Link(len(lines), len(lines), places, (node,)))
        lines.append(f"        return ({ops[-1][0] if ops else ''},)")
        path = f"{name}.{stage}.0.py"
        return self.artifact(
            "graph",
            path,
            "\n".join(lines) + "\n",
            links,
            compile_id=compile_id,
            stage=stage,
            order=STAGES.get(stage, 10),
            backward=backward,
            runs=False,
        )

    def kernel_module(self, compile_id: str, name: str, ops: Sequence[Op], backward: bool = False) -> str:
        """Inductor's module: a C++ kernel for every two nodes, and one call of a library for the last."""
        path = f"{name}.kernel_{int(backward)}.py"
        text = "# AOT ID: ['0_forward']; This file is what runs: a breakpoint in it stops.\nimport torch\n\n"
        groups = [ops[at : at + 2] for at in range(0, len(ops), 2)]
        calls = ["", "def call(args):", "    arg0_1, arg1_1 = args"]
        made = []
        for number, group in enumerate(groups):
            kernel = "_".join(node for node, _, _ in group) + f"_{number}"
            first = text.count("\n") + 1
            text += _CPP.format(name=kernel)
            last = text.count("\n")
            text += "\n"
            calls.append(f"    cpp_fused_{kernel}(arg0_1, buf{number})")
            places = tuple(dict.fromkeys(place for _, _, stack in group for place in stack))
            nodes = tuple(node for node, _, _ in group)
            made.append((f"cpp_fused_{kernel}", first, last, len(calls), places, nodes))
        calls.append("    extern_kernels.addmm(arg0_1, arg1_1, out=buf0)")
        calls.append("    return (buf0,)")
        base = text.count("\n")
        self.artifact(
            "kernels",
            path,
            text + "\n".join(calls) + "\n",
            compile_id=compile_id,
            stage="kernels",
            order=90,
            backward=backward,
            runs=True,
        )
        for kernel, first, last, call, places, nodes in made:
            self.kernels.append(
                ModuleKernel(path, kernel, compile_id, backward, False, first, last, (base + call,), places, nodes)
            )
        if ops:
            at = base + len(calls) - 1
            self.kernels.append(
                ModuleKernel(
                    path, "extern_kernels.addmm", compile_id, backward, True, 0, 0, (at,), ops[-1][2], (ops[-1][0],)
                )
            )
        return path

    def compilation(
        self,
        compile_id: str,
        function: int,
        ops: Sequence[Op],
        *,
        calls: Sequence[Call] = (),
        guards: Sequence[EntryGuard] = (),
        seconds: float = 0.5,
        backward: bool = False,
        **more: object,
    ) -> None:
        """All that one compile id leaves behind: graphs of every stage, kernels, transformed code, phases."""
        name = f"__compiled_fn_{len(self.compilations) * 2 + 1}"
        body = [f"def __transformed_{self.functions[function].name}(x, y):", f"    out = {name}(x, y)[0]"]
        links = [Link(2, 2, (ops[0][2][-1],))] if ops and ops[0][2] else []
        bound = [Call(name, None, 2)] if ops else []
        for call in calls:
            assert call.function is not None
            body.append(f"    return __resume_at_{self.functions[call.function].resumes_at}(out)")
            bound.append(Call(None, call.function, len(body)))
            if self.functions[call.function].resumes_at:
                at = self.functions[function].source, self.functions[call.function].resumes_at or 1
                links.append(Link(len(body), len(body), (at,)))
        plain = compile_id.replace("/", "_")
        path = f"__transformed_code_{plain}_for_{self.functions[function].name}.py"
        transformed = self.artifact(
            "transformed", path, "\n".join(body) + "\n", links, compile_id=compile_id, order=5, runs=True
        )
        if ops:
            self.graph(compile_id, name, "Captured_Graph", [(f"v_{n}", e, p) for n, e, p in ops])
            for stage in ("BEFORE_PRE_GRAD", "Forward_graph", "AFTER_POST_GRAD"):
                side = False if stage == "Forward_graph" else None
                self.graph(compile_id, name, stage, ops if stage != "AFTER_POST_GRAD" else ops[:-1] or ops, side)
            self.kernel_module(compile_id, name, ops)
        if ops and backward:
            reverse = [(f"{n}_grad", f"{e}  # backward", p) for n, e, p in reversed(ops)]
            self.graph(compile_id, name, "Joint_graph", [*ops, *reverse])
            self.graph(compile_id, name, "Backward_graph", reverse, True)
            self.kernel_module(compile_id, name, reverse, True)
        self._phases(compile_id, seconds, backward)
        self.compilations.append(
            Compilation(
                compile_id,
                function,
                graph=name if ops else None,
                transformed=transformed,
                calls=tuple(bound),
                guards=tuple(guards),
                guard_latency=1e-6 * (3 + len(guards)),
                start=self.clock - seconds,
                seconds=seconds,
                backward_seconds=seconds / 4 if backward else None,
                **more,  # type: ignore[arg-type]
            )
        )

    def _phases(self, compile_id: str, seconds: float, backward: bool) -> None:
        start, top = self.clock, len(self.phases)
        self.phases.append(Phase(compile_id, "dynamo", start, seconds))
        self.phases.append(Phase(compile_id, "bytecode_tracing", start, seconds * 0.2, parent=top))
        self.phases.append(Phase(compile_id, "backend_compile", start + seconds * 0.2, seconds * 0.7, parent=top))
        self.phases.append(Phase(compile_id, "inductor_compile", start + seconds * 0.3, seconds * 0.55, parent=top + 2))
        self.phases.append(Phase(compile_id, "build_guards", start + seconds * 0.9, seconds * 0.1, parent=top))
        self.clock = start + seconds
        if backward:
            self.phases.append(Phase(compile_id, "backward_compile", self.clock, seconds / 4, True))
            self.clock += seconds / 4
        self.clock += 0.05
