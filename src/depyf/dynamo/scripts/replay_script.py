"""One operation with its inputs as files: ``inputs.pt``, and ``replay.py``, which runs just that operation again."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Dict, Tuple

from depyf.answers.nonfinite import NonFinite
from depyf.base.quick_dataclass import replace
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.observe.node_words import operation_of
from depyf.dynamo.observe.observation import GraphCall
from depyf.dynamo.scripts.backend import backend_in_script
from depyf.dynamo.scripts.imports import Imports
from depyf.dynamo.scripts.whole import HowItRuns, RecordedCall, Script, write_script

if TYPE_CHECKING:
    import torch

_TEMPLATE = '''\
"""{title}

{where}
This runs just that operation again, with the inputs that it had, and exits with 0 if it shows the same.
"""

import os
{imports}
import torch
{setup}
saved = torch.load(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "inputs.pt"),
    map_location=None if torch.cuda.is_available() else "cpu",
    weights_only=False,
)
args, kwargs = saved["args"], saved["kwargs"]


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for each in value for tensor in tensors(each)] if isinstance(value, (list, tuple)) else []


def show(name, value):
    for tensor in tensors(value):
        nans, infs = int(torch.isnan(tensor).sum()), int(torch.isinf(tensor).sum())
        print(f"{{name}}: {{tensor.dtype}}{{list(tensor.shape)}} on {{tensor.device}}, {{nans}} NaN, {{infs}} Inf")
    return sum(int((~torch.isfinite(tensor)).sum()) for tensor in tensors(value) if tensor.is_floating_point())


show("input", (args, kwargs))
result = {call}  # {line}
count = show("output", result)
print(f"{operation}: {{count}} values are not finite")
raise SystemExit(0 if count else 1)
'''


def write_replay(
    directory: str, node: torch.fx.Node, args: Tuple[object, ...], kwargs: Dict[str, object], found: NonFinite
) -> Script:
    """Write both files into ``directory`` for what was found in ``node``; return the script.

    Raises ``OSError`` when they can't be written, and ``ValueError`` when the operation can't be named in a script.
    """
    imports, call = _call(node)
    needed = Imports()
    needed.for_operator(node.target)
    setup = _setup(needed)
    import torch

    torch.save({"args": args, "kwargs": kwargs}, os.path.join(directory, "inputs.pt"))
    path = os.path.join(directory, "replay.py")
    text = _TEMPLATE.format(
        title=found.title,
        where="" if found.line is None else f"It belongs to {found.line}\n",
        line="" if found.line is None else found.line.code,
        imports=imports,
        setup=setup,
        call=call,
        operation=operation_of(node),
    )
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return Script(path, notes=tuple(needed.notes))


def write_graph_replay(directory: str, call: GraphCall, found: NonFinite) -> Script:
    """Write a script that runs the whole graph with its backend and without; return it.

    A backend that only this program knows is not in it, which its notes say. Raises ``OSError`` when it can't be
    written.
    """
    backend = backend_in_script(None, call.graph.backend)
    path = os.path.join(directory, "replay.py")
    outputs = [call.outputs[number] for number in call.graph.results]
    whole = len(outputs) == len(call.outputs)
    script = write_script(
        path,
        call.graph.module,
        call.inputs,
        title=found.title,
        recorded=RecordedCall(outputs if whole else None),
        how=HowItRuns(backend.name, gradients=False),
    )
    return replace(script, notes=(*((backend.gap,) if backend.gap else ()), *script.notes))


def _setup(imports: Imports) -> str:
    """Return the code that must run before an operator that PyTorch lacks can be called."""
    paths = ["import sys", *imports.paths()] if imports.paths() else []
    sources = imports.sources()
    notes = [line for note in imports.notes for line in textwrap.wrap(note, 118)]
    parts = [*imports.lines(), *paths, *imports.late(), *(f"# {line}" for line in notes)]
    return "".join(f"{part}\n" for part in parts if part) + (f"\n\n{sources}\n\n" if sources else "")


def _call(node: torch.fx.Node) -> Tuple[str, str]:
    """Return the imports that a call of the node's operation needs, and the call."""
    if node.op == "call_method":
        return "", f"args[0].{node.target}(*args[1:], **kwargs)"
    target = node.target
    if private_names.SCHEMA.is_on(target):
        return "", f"torch.ops.{target}(*args, **kwargs)"
    module, name = str(getattr(target, "__module__", None) or ""), str(getattr(target, "__name__", ""))
    import torch

    for home in (module, "torch", "torch.nn.functional"):
        if home and torch_names.find(home, name) is target:
            used = home.replace("_operator", "operator")
            return ("" if used.split(".")[0] == "torch" else f"import {used}"), f"{used}.{name}(*args, **kwargs)"
    if getattr(torch.Tensor, name, None) is target:
        return "", f"torch.Tensor.{name}(*args, **kwargs)"
    raise ValueError(f"{operation_of(node)} can't be named in a script")
