"""Places in the dump of tests/programs/stepped.py where a debugger has to stop, and what has to be in sight there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

from depyf.dynamo.hooks import torch_names

VALUE, HALVES = "tensor([1., 1., 1.]", "tensor([0.5000, 0.5000, 0.5000]"


class Stop(NamedTuple):
    """A breakpoint at the first line that matches ``pattern``, where ``variable`` is shown as ``value``.

    ``<graph>`` in the first two stands for the name of the first compiled function.
    """

    file: str
    pattern: str
    variable: str
    value: str

    def place(self, dump: Path) -> Tuple[Path, int]:
        """The path, and the number of the line."""
        graph = min(path.name.partition(".")[0] for path in dump.glob("__compiled_fn_*"))  # 2.2 counts from 0
        path, pattern = dump / self.file.replace("<graph>", graph), self.pattern.replace("<graph>", graph)
        lines = [n for n, line in enumerate(path.read_text().splitlines(), 1) if re.search(pattern, line)]
        return path, lines[0]


TRANSFORMED = Stop("__transformed_code_0_for_toy.py", "^[^#]*<graph>", "a", VALUE)
LISTING = Stop("__transformed_code_0_for_toy.py", "^'.*LOAD_GLOBAL.*<graph>", "a", VALUE)
CAPTURED = Stop("<graph>.Captured_Graph.0.py", "return", "x", HALVES)
FORWARD = Stop("<graph>.Forward_graph.0.py", "return", "div", HALVES)
BACKWARD = Stop("<graph>.Backward_graph.0.py", "^ +div.* = ", "tangents_1", VALUE)
KERNEL = Stop("<graph>.kernel_0.py", "^ +buf0 = ", "primals_1", VALUE)
BACKWARD_KERNEL = Stop("<graph>.kernel_1.py", "^ +buf0 = ", "tangents_1", VALUE)
WRAPPER = Stop("stages/<graph>.AOT_runtime_wrapper_orchestration.0.py", "args_ = ", "args", VALUE)
BACKWARD_WRAPPER = Stop("stages/<graph>.AOT_compiled_function_backward.0.py", "all_args = ", "grad_args", VALUE)

# PyTorch generates these two since 2.13; 2.15 does it elsewhere, and calls them something else.
_GENERATED = torch_names.find("torch._functorch._aot_autograd.subclass_codegen", "_compile_and_exec_source") is not None
_FORWARD_WRAPPERS, _BACKWARD_WRAPPERS = ([WRAPPER], [BACKWARD_WRAPPER]) if _GENERATED else ([], [])

STOPS: Dict[str, List[Stop]] = {
    "eager": [TRANSFORMED, CAPTURED],
    "aot_eager": [TRANSFORMED, *_FORWARD_WRAPPERS, FORWARD, *_BACKWARD_WRAPPERS, BACKWARD],
    "inductor": [TRANSFORMED, *_FORWARD_WRAPPERS, KERNEL, *_BACKWARD_WRAPPERS, BACKWARD_KERNEL],
}
"""By backend, in the order in which they are reached: forward, then backward."""
