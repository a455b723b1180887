"""One graph as a standalone script, for a bug report or an experiment. It needs PyTorch, and not depyf.

It has the graph's code with the user's lines as comments, its inputs (made up by shape, strides, type and device, or
saved in a file beside it), and compares a compiled run with an eager one.
"""

from __future__ import annotations

import os
import re
import textwrap
from dataclasses import field
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names, torch_names, torch_settings
from depyf.dynamo.scripts import template
from depyf.dynamo.scripts.graph import GraphCode, graph_code, names_of_inputs
from depyf.dynamo.scripts.imports import Imports
from depyf.dynamo.scripts.program_objects import expression
from depyf.dynamo.scripts.tensors import Tensors, compact, is_real, is_tensor

if TYPE_CHECKING:
    import torch

_RANDOM = regex(r"dropout|rand|bernoulli|multinomial|normal_|\.normal|uniform|exponential|poisson|rrelu|gumbel")


@dataclass(frozen=True)
class Script:
    """A script that was written: its path, the path of the file with its values, and what it can't reproduce."""

    path: str
    values: Optional[str] = None
    notes: Tuple[str, ...] = ()

    def __fspath__(self) -> str:
        return self.path


@dataclass(frozen=True)
class HowItRuns:
    """How a script runs its graph. ``backend`` and ``options`` are arguments of ``torch.compile``, ``contexts``
    expressions of context managers to run in, ``gradients`` is whether inputs that require gradients do so in the
    script, ``tolerance`` the allowed error, relative to the largest value (None: what rounding explains). ``define`` is
    the backend where the script has to register it under its name: ``expression`` can write it."""

    backend: str = "inductor"
    options: Mapping[str, object] = field(default_factory=dict)
    contexts: Sequence[str] = ()
    gradients: bool = True
    tolerance: Optional[float] = None
    define: object = None


@dataclass(frozen=True)
class RecordedCall:
    """What is kept of a call, in a file beside the script: the values of the inputs, and more where it is known.

    ``expected`` are the flat outputs that are to be compared with what the script computes, ``rng_state`` is the state
    of the random numbers before the call.
    """

    expected: Optional[Sequence[object]] = None
    rng_state: object = None

    def saved(self) -> Dict[str, object]:
        """Return the contents of the file, besides the inputs."""
        found: Dict[str, object] = {}
        if self.expected is not None:
            keys = [f"output {number}" for number in range(len(self.expected))]
            pairs = zip(keys, self.expected)
            found["expected"] = {k: compact(v) if is_tensor(v) and is_real(v) else v for k, v in pairs}
        if self.rng_state is not None:
            found["rng"] = self.rng_state
        return found


@dataclass(frozen=True)
class ScriptInputs:
    """The inputs of a graph as expressions, with their names; ``bases`` are statements that have to run before."""

    names: Sequence[str]
    expressions: Sequence[str]
    bases: Sequence[str] = ()
    notes: Sequence[str] = ()


_AS_USUAL = HowItRuns()


def write_script(
    path: str,
    module: torch.fx.GraphModule,
    inputs: Sequence[object],
    *,
    title: str,
    recorded: Optional[RecordedCall] = None,
    how: HowItRuns = _AS_USUAL,
) -> Script:
    """Write ``module`` (an FX graph module) with its ``inputs`` (real or fake) as a script at ``path``.

    Of a ``recorded`` call the real tensors among the inputs go into a file beside it. Otherwise values are random, in
    the range of those that are known.

    Raises ``OSError`` when a file can't be written.
    """
    tensors = Tensors(values=recorded is not None, gradients=how.gradients)
    code = graph_code(module, tensors)
    _add_program(code.imports, how)
    if ":" in how.backend:
        code.imports.find(how.backend.partition(":")[0])
    names = names_of_inputs(module)
    expressions = tensors.inputs(names, inputs)
    saved: Dict[str, object] = {**tensors.saved, **(recorded.saved() if recorded is not None else {})}
    data = f"{os.path.splitext(path)[0]}.pt" if saved else None
    written = ScriptInputs(names, expressions, tensors.bases, tensors.notes)
    text = script_text(code, written, title=title, data=data, saved=saved, how=how)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    if data is not None:
        torch_names.module("torch").save(saved, data)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return Script(path, data, (*tensors.notes, *code.notes, *code.imports.notes))


def _add_program(imports: Imports, how: HowItRuns) -> None:
    """Add the settings that hold objects of the program, and the backend where the script has to define it."""
    for setting, value in torch_settings.settings_of_the_program():
        text = expression(value, setting.rpartition(".")[2], imports)
        if text is None:
            imports.notes.append(f"{setting}, which can't be written down")
        else:
            imports.module(setting.rpartition(".")[0])
            imports.define(f"{setting} = {text}")
    if how.define is not None:
        imports.module(private_names.REGISTER_BACKEND.module)
        text = expression(how.define, f"{how.backend}_backend", imports)
        imports.define(f"{private_names.REGISTER_BACKEND.whole}({text}, name={how.backend!r})")


def script_text(
    code: GraphCode,
    inputs: ScriptInputs,
    *,
    title: str,
    data: Optional[str],
    saved: Mapping[str, object],
    how: HowItRuns,
) -> str:
    """Return the text of a script for a graph whose code is known, and its inputs as expressions."""
    file = os.path.basename(data) if data else None
    names, expressions, bases = inputs.names, inputs.expressions, inputs.bases
    notes = [*inputs.notes, *code.notes, *code.imports.notes]
    options = {**({"dynamic": True} if "Sym(" in code.text else {}), **how.options}
    parts = [
        f"{_head(title, notes, file)}\n\n{_imports(code, data=data is not None)}",
        template.LOAD.format(file=file) if file else "",
        code.imports.sources(),
        code.text.strip(),
        _inputs(names, expressions, bases, saved=file is not None),
        template.TENSOR if _uses("tensor", code, expressions, bases) else "",
        template.WITH_STATE if "with_state(" in code.text else "",
        _constants(names, how, expected="expected" in saved, lowest=_lowest(code.text)),
        _run(options, how.contexts, rng="rng" in saved),
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
    settings = [*torch_settings.settings_that_were_changed(), *torch_settings.numerics_that_were_changed()]
    if _RANDOM.search(code.text):
        settings = [each for each in settings if "fallback_random" not in each]
        settings.append(
            f"{private_names.INDUCTOR_CONFIG.whole}.fallback_random = True  # the random numbers of eager mode"
        )
    modules = sorted({f"import {each.split('.config.')[0]}.config" for each in settings if ".config." in each})
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
    """Return the narrowest floating point type that a graph computes in, of those that lose precision."""
    if re.search(r"\bbf16\[|torch\.bfloat16", text):
        return "torch.bfloat16"
    return "torch.float16" if re.search(r"\bf16\[|torch\.float16", text) else "torch.float64"


def _constants(names: Sequence[str], how: HowItRuns, *, expected: bool, lowest: str) -> str:
    lines = ["NAMES = [", *(f"    {name!r}," for name in names), "]"] if names else ["NAMES = []"]
    lines += [f"BACKEND = {how.backend!r}", 'EXPECTED = load()["expected"]' if expected else "EXPECTED = None"]
    lines += [f"ALLOWED = {how.tolerance!r}", f"LOWEST = {lowest}"]
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
