"""One graph as a script that runs on its own: for a bug report, or to try something. It needs PyTorch, and not depyf.

It has the graph's code with the user's lines as comments, its inputs (made up by shape, strides, type and device, or
saved in a file beside it), and compares a compiled run with an eager one.
"""

from __future__ import annotations

import os
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.dynamo.hooks import private_names, torch_names, torch_settings
from depyf.dynamo.scripts import template
from depyf.dynamo.scripts.graph import GraphCode, graph_code, names_of_inputs
from depyf.dynamo.scripts.tensors import Tensors, compact, is_real, is_tensor

if TYPE_CHECKING:
    import torch

_RANDOM = re.compile(r"dropout|rand|bernoulli|multinomial|normal_|\.normal|uniform|exponential|poisson|rrelu|gumbel")


@dataclass(frozen=True)
class Script:
    """A script that was written: its path, that of the file with its values, and what it can't have as it was."""

    path: str
    values: Optional[str] = None
    notes: Tuple[str, ...] = ()

    def __fspath__(self) -> str:
        return self.path


def write_script(
    path: str,
    module: torch.fx.GraphModule,
    inputs: Sequence[object],
    *,
    title: str,
    values: bool = False,
    expected: Optional[Sequence[object]] = None,
    backend: str = "inductor",
    options: Optional[Mapping[str, object]] = None,
    gradients: bool = True,
    rng_state: object = None,
    contexts: Sequence[str] = (),
    tolerance: Optional[float] = None,
) -> Script:
    """Write ``module`` (an FX graph module) with its ``inputs`` (real or fake) as a script at ``path``.

    With ``values`` the real tensors among the inputs go into a file beside it, with ``expected``, the flat outputs that
    are to be compared with what the script computes, and with ``rng_state``, the state of the random numbers before the
    call. Otherwise values are random, in the range of those that are known. ``gradients`` says whether inputs that
    require gradients do so in the script, ``contexts`` are expressions of context managers to run in, ``options`` those
    of ``torch.compile``.

    Raises ``OSError`` when a file can't be written.
    """
    tensors = Tensors(values=values, gradients=gradients)
    code = graph_code(module, tensors)
    if ":" in backend:
        code.imports.find(backend.partition(":")[0])
    input_names = names_of_inputs(module)
    expressions = tensors.inputs(input_names, inputs)
    saved: Dict[str, object] = dict(tensors.saved)
    if values and expected is not None:
        keys = [f"output {number}" for number in range(len(expected))]
        saved["expected"] = {k: compact(v) if is_tensor(v) and is_real(v) else v for k, v in zip(keys, expected)}
    if values and rng_state is not None:
        saved["rng"] = rng_state
    data = f"{os.path.splitext(path)[0]}.pt" if saved else None
    text = script_text(
        code,
        input_names,
        expressions,
        tensors.bases,
        title=title,
        data=data,
        saved=saved,
        backend=backend,
        options=options or {},
        contexts=contexts,
        tolerance=tolerance,
        notes=tensors.notes,
    )
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    if data is not None:
        torch_names.module("torch").save(saved, data)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return Script(path, data, (*tensors.notes, *code.notes, *code.imports.notes))


def script_text(
    code: GraphCode,
    names: Sequence[str],
    expressions: Sequence[str],
    bases: Sequence[str],
    *,
    title: str,
    data: Optional[str],
    saved: Mapping[str, object],
    backend: str,
    options: Mapping[str, object],
    contexts: Sequence[str] = (),
    tolerance: Optional[float] = None,
    notes: Sequence[str] = (),
) -> str:
    """The text of a script for a graph whose code is known, and its inputs as expressions."""
    file = os.path.basename(data) if data else None
    parts = [
        f"{_head(title, [*notes, *code.notes, *code.imports.notes], file)}\n\n{_imports(code, data=data is not None)}",
        template.LOAD.format(file=file) if file else "",
        code.imports.sources(),
        code.text.strip(),
        _inputs(names, expressions, bases, saved=file is not None),
        template.TENSOR if _uses("tensor", code, expressions, bases) else "",
        template.WITH_STATE if "with_state(" in code.text else "",
        _constants(names, backend, expected="expected" in saved, tolerance=tolerance, lowest=_lowest(code.text)),
        _run({**({"dynamic": True} if "Sym(" in code.text else {}), **options}, contexts, rng="rng" in saved),
        template.COMPARE,
    ]
    text = "\n\n\n".join(part.strip() for part in parts if part.strip())
    return text + "\n"


def _head(title: str, notes: Sequence[str], data: Optional[str]) -> str:
    torch = torch_names.torch_version()
    lines = textwrap.wrap(f"{title}: a script that runs on its own (written by depyf, PyTorch {torch}).", 112)
    what = f"Its inputs are saved in {data}." if data else "The values of its inputs are made up."
    lines += ["", f"It runs the graph eagerly and compiled, and compares. {what}"]
    for note in dict.fromkeys(notes):
        lines += ["", *textwrap.wrap(f"Not as it was: {note}.", 112)]
    body = "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{body}\n"""'


def _imports(code: GraphCode, *, data: bool) -> str:
    own = ["import argparse", "import importlib", *(["import os"] if data else []), "import sys"]
    settings = torch_settings.settings_that_were_changed()
    if _RANDOM.search(code.text):
        settings = [each for each in settings if "fallback_random" not in each]
        settings.append(
            f"{private_names.INDUCTOR_CONFIG.whole}.fallback_random = True  # the random numbers of eager mode"
        )
    modules = sorted({f"import {each.split('.config.')[0]}.config" for each in settings})
    imports = code.imports
    head = [
        *own,
        "",
        "import torch",
        *modules,
        *imports.lines(),
        f"from {private_names.TREE_FLATTEN.module} import {private_names.TREE_FLATTEN.name}",
    ]
    blocks = ["\n".join(head), "\n".join(imports.paths()), "\n".join(imports.late()), "\n".join(settings)]
    return "\n\n".join(block for block in blocks if block)


def _uses(name: str, code: GraphCode, expressions: Sequence[str], bases: Sequence[str]) -> bool:
    wanted = re.compile(rf"(?<![\w.]){name}\(")
    return any(wanted.search(text) for text in (code.text, *expressions, *bases))


def _inputs(names: Sequence[str], expressions: Sequence[str], bases: Sequence[str], *, saved: bool) -> str:
    lines = ["def inputs():", '    """The inputs of the graph, in order."""']
    lines += ["    saved = load()"] if saved else []
    lines += [f"    {base}" for base in bases]
    lines += ["    return [", *(f"        {text},  # {name}" for name, text in zip(names, expressions)), "    ]"]
    return "\n".join(lines)


def _lowest(text: str) -> str:
    """The narrowest floating point type that a graph computes in, of those that lose digits on the way."""
    if re.search(r"\bbf16\[|torch\.bfloat16", text):
        return "torch.bfloat16"
    return "torch.float16" if re.search(r"\bf16\[|torch\.float16", text) else "torch.float64"


def _constants(names: Sequence[str], backend: str, *, expected: bool, tolerance: Optional[float], lowest: str) -> str:
    lines = ["NAMES = [", *(f"    {name!r}," for name in names), "]"] if names else ["NAMES = []"]
    lines += [f"BACKEND = {backend!r}", 'EXPECTED = load()["expected"]' if expected else "EXPECTED = None"]
    lines += [f"ALLOWED = {tolerance!r}", f"LOWEST = {lowest}"]
    return "\n".join(lines)


def _run(options: Mapping[str, object], contexts: Sequence[str], *, rng: bool) -> str:
    lines: List[str] = []
    for depth, context in enumerate(contexts):
        lines.append(f"{'    ' * (depth + 1)}with {context}:")
    lines.append(f"{'    ' * (len(contexts) + 1)}outputs = function(*arguments)")
    return template.RUN.format(
        options="".join(f", {name}={value!r}" for name, value in options.items()),
        seed='torch.set_rng_state(load()["rng"])' if rng else "torch.manual_seed(0)",
        call="\n".join(lines),
    )
