"""Rows for graph breaks. ``limit_rows.py`` has errors of compilations and limits."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import rows_of_blocks
import torch
from harness import Remedy, Row, expected, fewer, nothing

from depyf.diagnosis import break_advice, breaks_of_wrappers
from depyf.diagnosis.break_advice import BreakCause

RULES = {
    **break_advice._FOR_BREAKS,
    "optimizer": breaks_of_wrappers._FOR_OPTIMIZER,
    "no advice": break_advice._NO_ADVICE,
    **break_advice._FOR_UNRESUMED,
}

SCALARS = "torch._dynamo.config.capture_scalar_outputs = True"
SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"
BEFORE = "before or after the compiled function"


def _other_codes() -> Optional[str]:
    # The codes, and what breaks at all, are those of one version.
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    return None if version == (2, 13) else "the rows have the graph breaks of PyTorch 2.13"


def row(
    name: str,
    code: str,
    rule: Any,
    program: str,
    *remedies: Remedy,
    says: Tuple[str, ...] = (),
    never: Tuple[str, ...] = (),
    **before: int,
) -> Row:
    """Return a row of one break: ``code`` is Dynamo's number of it, ``rule`` the advice."""
    codes = (f"/{code.lower()}.html",) if code else ()
    text, before = program.lstrip("\n"), before or {"breaks": 1}
    return Row(name, (rule,), text, before, remedies, says=(*codes, *says), never=never, skip=_other_codes)


def a_function(body: str, call: str = "torch.ones(3)", parameters: str = "x", top: str = "") -> str:
    """Return a program that compiles ``def f(x)`` with this body, and calls it."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{top}{chr(10) if top else ''}def f({parameters}):\n{lines}call(compile(f), {call})\n"


def one(words: str, *edit: Tuple[str, str], settings: str = "", breaks: int = 0, **options: Any) -> Remedy:
    """Return a remedy after which there are no breaks."""
    return fewer(words, *edit, settings=settings, breaks=breaks, **options)


ROWS = [
    # --- numbers that are read out of tensors ---
    row(
        "item",
        "GB0124",
        BreakCause.ITEM,
        a_function("return x * x.sum().item()"),
        one("Keep it a tensor", ("x.sum().item()", "x.sum()")),
        one(SCALARS, settings=SCALARS),
    ),
    row(
        "float() of a tensor",
        "GB0124",
        BreakCause.ITEM,
        a_function("return x * float(x.sum())"),
        one("Keep it a tensor", ("float(x.sum())", "x.sum()")),
        one(SCALARS, settings=SCALARS),
    ),
    row(
        "int() of a tensor",
        "GB0124",
        BreakCause.ITEM,
        a_function("return x * int(x.sum())"),
        one("Keep it a tensor", ("int(x.sum())", "x.sum().to(torch.int64)")),
        one(SCALARS, settings=SCALARS),
    ),
    row(
        "index of a list",
        "GB0124",
        BreakCause.ITEM,
        a_function("return x + [1, 2, 3][i]", "torch.ones(3), torch.tensor(1)", "x, i"),
        one("Keep it a tensor", ("[1, 2, 3][i]", "torch.tensor([1, 2, 3])[i]")),
    ),
    row(
        "tolist() of integers",
        "GB0033",
        BreakCause.ITEM_IN_CALL,
        a_function("return x + sum(x.tolist())", "torch.arange(3)"),
        one("Keep it a tensor", ("sum(x.tolist())", "x.sum()")),
        one(SCALARS, settings=SCALARS),
    ),
    row(
        "a tensor as an index",
        "GB0033",
        BreakCause.ITEM_IN_CALL,
        a_function("i = x.sum(1).argsort()[0]\nreturn x * 2 + x[i]", "torch.ones(3, 2)"),
        one("torch.index_select", ("x[i]", "x.index_select(0, i.reshape(1))[0]")),
        nothing("neither a branch, an index", settings=SCALARS),
    ),
    row(
        "math of a tensor",
        "GB0033",
        BreakCause.ITEM_IN_CALL,
        a_function("return x + math.sqrt(x.sum())", top="import math"),
        one("Keep it a tensor", ("math.sqrt(x.sum())", "torch.sqrt(x.sum())")),
    ),
    row(
        "tolist() of floats",
        "GB0109",
        BreakCause.TOLIST,
        a_function("return x + sum(x.tolist())"),
        one("Keep them a tensor", ("sum(x.tolist())", "x.sum()")),
    ),
    row(
        "allclose",
        "GB0033",
        BreakCause.COMPARED,
        a_function("if torch.allclose(x, x):\n    return x + 1\nreturn x"),
        one(
            "choose with torch.where",
            (
                "if torch.allclose(x, x):\n        return x + 1\n    return x",
                "return torch.where(torch.isclose(x, x).all(), x + 1, x)",
            ),
        ),
    ),
    row(
        "equal",
        "GB0033",
        BreakCause.COMPARED,
        a_function("if torch.equal(x, x):\n    return x + 1\nreturn x"),
        one(
            "choose with torch.where",
            (
                "if torch.equal(x, x):\n        return x + 1\n    return x",
                "return torch.where((x == x).all(), x + 1, x)",
            ),
        ),
    ),
    row(
        "range of a tensor",
        "GB0059",
        BreakCause.BUILTIN,
        a_function("for k in range(i):\n    x = x + k\nreturn x", "torch.ones(3), torch.tensor(2)", "x, i"),
        one("pass the result", ("torch.tensor(2)", "int(torch.tensor(2))")),
    ),
    # --- shapes that depend on data ---
    row(
        "nonzero",
        "GB0036",
        BreakCause.DYNAMIC_SHAPE,
        a_function("return torch.nonzero(x).float() + 1"),
        one(SHAPES, settings=SHAPES),
    ),
    row(
        "index by a mask",
        "GB0036",
        BreakCause.DYNAMIC_SHAPE,
        a_function("return (x[x > 0] + 1).sum()"),
        one("a mask of fixed shape", ("(x[x > 0] + 1).sum()", "torch.where(x > 0, x + 1, 0.0).sum()")),
        one(SHAPES, settings=SHAPES),
    ),
    row(
        "a branch on a shape that depends on data",
        "GB0036",
        BreakCause.DYNAMIC_SHAPE,
        a_function("y = x[x > 0]\nreturn x.sum() if y.shape[0] > 2 else x"),
        one(
            "a mask of fixed shape",
            (
                "y = x[x > 0]\n    return x.sum() if y.shape[0] > 2 else x",
                "return torch.where((x > 0).sum() > 2, x.sum(), x.sum())",
            ),
        ),
        nothing("only moves the break", settings=SHAPES),
    ),
    row(
        "unique",
        "GB0036",
        BreakCause.DYNAMIC_SHAPE,
        a_function("return torch.unique(x) + 1"),
        one(SHAPES, settings=SHAPES),
    ),
    row(
        "masked_select",
        "GB0036",
        BreakCause.DYNAMIC_SHAPE,
        a_function("return torch.masked_select(x, x > 0) + 1"),
        one(SHAPES, settings=SHAPES),
    ),
    row(
        "where with one argument",
        "GB0036",
        BreakCause.DYNAMIC_SHAPE,
        a_function("return x[torch.where(x > 0)] + 1"),
        one(SHAPES, settings=SHAPES),
    ),
    # --- branches on data ---
    row(
        "branch on a tensor",
        "GB0170",
        BreakCause.BRANCH,
        a_function("if x.sum() > 0:\n    return x + 1\nreturn x - 1", "torch.ones(4)"),
        one(
            "torch.where",
            (
                "    if x.sum() > 0:\n        return x + 1\n    return x - 1",
                "    return torch.where(x.sum() > 0, x + 1, x - 1)",
            ),
        ),
        one(
            "torch.cond",
            (
                "    if x.sum() > 0:\n        return x + 1\n    return x - 1",
                "    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))",
            ),
        ),
    ),
    row(
        "any()",
        "GB0170",
        BreakCause.BRANCH,
        a_function("return x + 1 if torch.any(x > 0) else x"),
        one("torch.where", ("x + 1 if torch.any(x > 0) else x", "torch.where(torch.any(x > 0), x + 1, x)")),
    ),
    row(
        "a check that raises",
        "GB0170",
        BreakCause.RAISING,
        a_function("y = x / 2\nif torch.isnan(y).any():\n    raise ValueError('nan')\nreturn y + 1"),
        one(
            "assert torch.isfinite(y).all()",
            (
                "if torch.isnan(y).any():\n        raise ValueError('nan')\n",
                "assert torch.isfinite(y).all(), 'nan'\n",
            ),
        ),
        one("out of the compiled function", ("    if torch.isnan(y).any():\n        raise ValueError('nan')\n", "")),
        never=("torch.cond",),
    ),
    row(
        "while on data",
        "GB0170",
        BreakCause.WHILE,
        a_function("while x.sum() < 6:\n    x = x + 1\nreturn x"),
        one(
            "choose with torch.where",
            (
                "    while x.sum() < 6:\n        x = x + 1\n",
                "    for _ in range(3):\n        x = torch.where(x.sum() < 6, x + 1, x)\n",
            ),
        ),
        one(
            "compile the body alone",
            ("def f(x):\n    while x.sum() < 6:\n        x = x + 1\n", "def body(x):\n    x = x + 1\n"),
            (
                "call(compile(f), torch.ones(3))",
                "c, x = compile(body), torch.ones(3)\nwhile x.sum() < 6:\n    x = c(x)\nout(x)",
            ),
        ),
        never=("torch.cond",),
        breaks=2,
    ),
    row(
        "and of two tensors",
        "GB0170",
        BreakCause.BRANCH,
        a_function("return x + 1 if x.sum() > 0 and x.max() > 0 else x"),
        one(
            "torch.where",
            ("x + 1 if x.sum() > 0 and x.max() > 0 else x", "torch.where((x.sum() > 0) & (x.max() > 0), x + 1, x)"),
        ),
        breaks=2,
    ),
    row(
        "not of a tensor",
        "GB0170",
        BreakCause.BRANCH,
        a_function("return x + 1 if not x.sum() else x"),
        one("torch.where", ("x + 1 if not x.sum() else x", "torch.where(x.sum() == 0, x + 1, x)")),
    ),
    row(
        "filter() of tensors",
        "GB0170",
        BreakCause.BRANCH,
        a_function("return sum(filter(lambda t: t.sum() > 0, [x, x + 1]))"),
        one(
            "torch.where",
            (
                "sum(filter(lambda t: t.sum() > 0, [x, x + 1]))",
                "sum(torch.where(t.sum() > 0, t, 0.0) for t in [x, x + 1])",
            ),
        ),
    ),
    # --- output of the program ---
    row(
        "print",
        "GB0059",
        BreakCause.PRINT,
        a_function("x = x + 1\nprint('', end='')\nreturn x * 2"),
        one("Take the print out", ("    print('', end='')\n", "")),
        one(
            "reorderable_logging_functions.add(print)",
            settings="torch._dynamo.config.reorderable_logging_functions.add(print)",
        ),
    ),
    row(
        "warnings.warn",
        "GB0007",
        BreakCause.WARNING,
        a_function(
            "x = x + 1\nwarnings.warn('a')\nreturn x * 2", top="import warnings\nwarnings.simplefilter('ignore')"
        ),
        one("Warn outside", ("    warnings.warn('a')\n", "")),
        one(
            "reorderable_logging_functions.add(warnings.warn)",
            settings="import warnings\ntorch._dynamo.config.reorderable_logging_functions.add(warnings.warn)",
        ),
    ),
    row(
        "logger.info",
        "GB0291",
        BreakCause.LOGGING,
        a_function("x = x + 1\nlog.info('a')\nreturn x * 2", top="import logging\nlog = logging.getLogger('advised')"),
        one("Log outside", ("    log.info('a')\n", "")),
        one(
            "ignore_logger_methods.add(logging.Logger.info)",
            settings="import logging\ntorch._dynamo.config.ignore_logger_methods.add(logging.Logger.info)",
        ),
    ),
    row(
        "str() of a tensor",
        "GB0059",
        BreakCause.BUILTIN,
        a_function("y = x + 1\ns = str(y)\nreturn y * 2"),
        one("Call it", ("    s = str(y)\n", "")),
    ),
    row(
        "open()",
        "GB0059",
        BreakCause.BUILTIN,
        a_function("x = x + 1\nn = open('/dev/null')\nreturn x * 2"),
        one("Call it", ("    n = open('/dev/null')\n", "")),
    ),
    row(
        "globals()",
        "GB0059",
        BreakCause.BUILTIN,
        a_function("globals()['z'] = 3\nreturn x + 1"),
        one("Call it", ("    globals()['z'] = 3\n", "")),
    ),
    row(
        "exec()",
        "GB0059",
        BreakCause.BUILTIN,
        a_function("exec('z = 1')\nreturn x + 1"),
        one("Call it", ("    exec('z = 1')\n", "")),
    ),
    # --- breaks that are asked for ---
    row(
        "graph_break",
        "GB0025",
        BreakCause.ASKED_FOR,
        a_function("x = x + 1\ntorch._dynamo.graph_break()\nreturn x * 2"),
        one("Remove it", ("    torch._dynamo.graph_break()\n", "")),
    ),
    row(
        "disabled function",
        "GB0098",
        BreakCause.DISABLED,
        a_function("return g(x + 1) * 2", top="@torch.compiler.disable\ndef g(x):\n    return x + 1"),
        one("Remove the mark", ("@torch.compiler.disable\n", "")),
    ),
    row(
        "disabled function, not recursive",
        "GB0099",
        BreakCause.DISABLED,
        a_function("return g(x + 1) * 2", top="@torch.compiler.disable(recursive=False)\ndef g(x):\n    return x + 1"),
        one("Remove the mark", ("@torch.compiler.disable(recursive=False)\n", "")),
    ),
    row(
        "disabled constructor",
        "GB0099",
        BreakCause.DISABLED,
        a_function(
            "return M(x + 1).v * 2",
            top="class M:\n    @torch.compiler.disable\n    def __init__(self, v):\n        self.v = v",
        ),
        one("Remove the mark", ("    @torch.compiler.disable\n", "")),
    ),
    row(
        "disabled function in reduce()",
        "GB0098",
        BreakCause.DISABLED,
        a_function(
            "return functools.reduce(g, [x + 1, x])",
            top="import functools\n@torch.compiler.disable\ndef g(x, y):\n    return x + y",
        ),
        one("Remove the mark", ("@torch.compiler.disable\n", "")),
    ),
    # --- what Python does by itself ---
    row(
        "random.random",
        "GB0007",
        BreakCause.RANDOM,
        a_function("return x + (1 if r.random() < 0.5 else 2)", top="import random\nrandom.seed(0)\nr = random"),
        one(
            "Draw it before the call",
            ("def f(x)", "def f(x, n)"),
            ("r.random() <", "n <"),
            ("torch.ones(3)", "torch.ones(3), r.random()"),
        ),
        says=("Random.random",),
    ),
    row(
        "branch on random.Random",
        "GB0170",
        BreakCause.RANDOM,
        a_function("if random.Random(0).random() < 0.5:\n    return x + 1\nreturn x - 1", top="import random"),
        one(
            "pass the result of the test",
            ("def f(x)", "def f(x, low)"),
            ("if random.Random(0).random() < 0.5", "if low"),
            ("torch.ones(3)", "torch.ones(3), random.Random(0).random() < 0.5"),
        ),
        one(
            "choose with torch.where",
            ("def f(x)", "def f(x, n)"),
            (
                "if random.Random(0).random() < 0.5:\n        return x + 1\n    return x - 1",
                "return torch.where(n < 0.5, x + 1, x - 1)",
            ),
            ("torch.ones(3)", "torch.ones(3), torch.tensor(random.Random(0).random())"),
        ),
    ),
    row(
        "random.randint as the size of a roll",
        "GB0033",
        BreakCause.RANDOM_VALUE,
        a_function("k = random.randint(0, 3)\nreturn torch.roll(x, k, 0)", top="import random\nrandom.seed(0)"),
        one(
            "Draw it before the call",
            ("def f(x)", "def f(x, k)"),
            ("    k = random.randint(0, 3)\n", ""),
            ("torch.ones(3)", "torch.ones(3), random.randint(0, 3)"),
        ),
        says=("k, of random.randint in line 4",),
        never=("capture_scalar_outputs",),
    ),
    row(
        "random.randint in a slice",
        "GB0213",
        BreakCause.RANDOM_VALUE,
        a_function(
            "if not torch.compiler.is_compiling(): plain()\ni = random.randint(0, 3)\nreturn x[i:i + 2]",
            "torch.ones(9)",
            top="import random\nrandom.seed(0)",
        ),
        fewer(
            "pass it as a Python number",
            ("def f(x)", "def f(x, i)"),
            ("    i = random.randint(0, 3)\n", ""),
            ("torch.ones(9)", "torch.ones(9), random.randint(0, 3)"),
            plain=0,
        ),
        says=("i, of random.randint in line 5",),
        never=("capture_scalar_outputs",),
        plain=1,
    ),
    row(
        "random.choice",
        "GB0007",
        BreakCause.RANDOM,
        a_function("return x + random.choice([1, 2])", top="import random\nrandom.seed(0)"),
        one(
            "Draw it before the call",
            ("def f(x)", "def f(x, n)"),
            ("random.choice([1, 2])\n", "n\n"),
            ("torch.ones(3)", "torch.ones(3), random.choice([1, 2])"),
        ),
    ),
    row(
        "random.shuffle",
        "GB0007",
        BreakCause.RANDOM,
        a_function("l = [x, x + 1]\nrandom.shuffle(l)\nreturn l[0] * 2", top="import random\nrandom.seed(0)"),
        one(
            "Draw it before the call",
            ("def f(x)", "def f(x, order)"),
            ("    random.shuffle(l)\n", "    l = [l[at] for at in order]\n"),
            ("call(", "order = [0, 1]\nrandom.shuffle(order)\ncall("),
            ("torch.ones(3)", "torch.ones(3), order"),
        ),
    ),
    row(
        "random.seed",
        "GB0007",
        BreakCause.SEED,
        a_function("random.seed(1)\nreturn x + 1", top="import random"),
        one("Set the seed before", ("    random.seed(1)\n", ""), ("call(", "random.seed(1)\ncall(")),
    ),
    row(
        "torch.manual_seed",
        "GB0007",
        BreakCause.SEED,
        a_function("torch.manual_seed(1)\nreturn x + torch.rand(3)"),
        one(
            "Set the seed before",
            ("    torch.manual_seed(1)\n", ""),
            ("call(", "torch.manual_seed(1)\ncall("),
            counts_only="random numbers of a compiled graph are others",
        ),
    ),
    row(
        "time.time",
        "GB0007",
        BreakCause.CLOCK,
        a_function("x = x + 1\nt = time.time()\nreturn x * 2", top="import time"),
        one("Read the time outside", ("    t = time.time()\n", "")),
    ),
    row(
        "time.perf_counter",
        "GB0007",
        BreakCause.CLOCK,
        a_function("x = x + 1\nt = time.perf_counter()\nreturn x * 2", top="import time"),
        one("Read the time outside", ("    t = time.perf_counter()\n", "")),
    ),
    row(
        "datetime.now",
        "GB0156",
        BreakCause.CLOCK,
        a_function("d = datetime.datetime.now()\nreturn x + 1", top="import datetime"),
        one("Read the time outside", ("    d = datetime.datetime.now()\n", "")),
    ),
    row(
        "time.sleep",
        "GB0007",
        BreakCause.OPAQUE_FUNCTION,
        a_function("time.sleep(0)\nreturn x + 1", top="import time"),
        one(BEFORE, ("    time.sleep(0)\n", ""), ("call(", "time.sleep(0)\ncall(")),
    ),
    row(
        "gc.collect",
        "GB0007",
        BreakCause.OPAQUE_FUNCTION,
        a_function("gc.collect()\nreturn x + 1", top="import gc"),
        one(BEFORE, ("    gc.collect()\n", "")),
    ),
    row(
        "a function of C",
        "GB0007",
        BreakCause.OPAQUE_FUNCTION,
        a_function("return x + zlib.crc32(b'a') % 3", top="import zlib"),
        one(
            BEFORE,
            ("def f(x)", "def f(x, n)"),
            ("zlib.crc32(b'a')", "n"),
            ("torch.ones(3)", "torch.ones(3), zlib.crc32(b'a')"),
        ),
    ),
    row(
        "os.path.exists",
        "GB0007",
        BreakCause.OPAQUE_FUNCTION,
        a_function("return x + os.path.exists('/')", top="import os"),
        one(
            BEFORE,
            ("def f(x)", "def f(x, n)"),
            ("os.path.exists('/')", "n"),
            ("torch.ones(3)", "torch.ones(3), os.path.exists('/')"),
        ),
    ),
    row(
        "os.environ",
        "GB0007",
        BreakCause.OPAQUE_FUNCTION,
        a_function("os.environ['ADVISED'] = '1'\nreturn x + 1", top="import os"),
        one(BEFORE, ("    os.environ['ADVISED'] = '1'\n", "")),
    ),
    row(
        "uuid",
        "GB0007",
        BreakCause.OPAQUE_FUNCTION,
        a_function("d = uuid.uuid4()\nreturn x + 1", top="import uuid"),
        one(BEFORE, ("    d = uuid.uuid4()\n", "")),
    ),
    row(
        "pickle",
        "GB0007",
        BreakCause.OPAQUE_FUNCTION,
        a_function("return len(pickle.dumps(s)) + x", "torch.ones(3), 'a'", "x, s", top="import pickle"),
        one(BEFORE, ("len(pickle.dumps(s))", "s"), ("'a'", "len(pickle.dumps('a'))")),
    ),
    row(
        "a function of C on tensors",
        "GB0007",
        BreakCause.OPAQUE_FUNCTION,
        """
import zlib

def checked(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([float(zlib.crc32(memoryview(x.numpy())) % 7)])

def f(x):
    return x + checked(x)

call(compile(f), torch.ones(3))
""",
        one(
            "torch.library.custom_op",
            ("def checked", '@torch.library.custom_op("advised::checked", mutates_args=())\ndef checked'),
            ("\n\ndef f(x)", "\n\nchecked.register_fake(lambda x: torch.empty(1))\n\ndef f(x)"),
        ),
        breaks=3,
    ),
    row(
        "lock",
        "GB0142",
        BreakCause.CONTEXT_MANAGER,
        "import threading\nlock = threading.Lock()\n"
        + a_function("if not torch.compiler.is_compiling(): plain()\nwith lock:\n    x = x * 2\nreturn x"),
        fewer(
            "Enter it around the call",
            ("    with lock:\n        x = x * 2\n", "    x = x * 2\n"),
            ("call(", "with lock: call("),
            plain=0,
        ),
        plain=1,
    ),
    Row(
        "a break in a loop",
        (BreakCause.LOOP,),
        "",
        {},
        (),
        skip=lambda: "PyTorch 2.13 reports what breaks in a loop, and not the loop",
    ),
    row(
        "assert with fullgraph",
        "",
        BreakCause.ASSERT,
        a_function("assert x.sum() > 0, E()\nreturn x + 1", top="class E: pass").replace("(f)", "(f, fullgraph=True)"),
        fewer(
            "torch._assert_async",
            ("assert x.sum() > 0, E()", "torch._assert_async(x.sum() > 0)"),
            raised=0,
            counts_only="the call raised before",
        ),
        raised=1,
    ),
    row(
        "a loop over a break",
        "GB0025",
        BreakCause.ASKED_FOR,
        a_function(
            "for i in range(3):\n    x = g(x)\nreturn x",
            top="def g(x):\n    x = x.sin()\n    torch._dynamo.graph_break()\n    return x.cos()",
        ),
        one("Remove it", ("    torch._dynamo.graph_break()\n", "")),
    ),
    row(
        "backward",
        "GB0123",
        BreakCause.BACKWARD,
        a_function("(x * 2).sum().backward()\nreturn x.grad", "torch.ones(3, requires_grad=True)"),
        one(
            "outside of the compiled function",
            ("    (x * 2).sum().backward()\n    return x.grad", "    return (x * 2).sum()"),
            (
                "call(compile(f), torch.ones(3, requires_grad=True))",
                "x = torch.ones(3, requires_grad=True)\ncompile(f)(x).backward()\nout(x.grad)",
            ),
        ),
    ),
    row(
        "a step that returns its loss",
        "GB0123",
        BreakCause.BACKWARD,
        a_function("loss = (x * 2).sum()\nloss.backward()\nreturn loss", "torch.ones(3, requires_grad=True)"),
        one(
            "outside of the compiled function",
            ("    loss.backward()\n", ""),
            (
                "call(compile(f), torch.ones(3, requires_grad=True))",
                "call(compile(f), torch.ones(3, requires_grad=True)).backward()",
            ),
        ),
        one(
            "trace_autograd_ops = True",
            ("return loss", "return loss.detach()"),
            settings="torch._dynamo.config.trace_autograd_ops = True",
        ),
        nothing("returned detached", settings="torch._dynamo.config.trace_autograd_ops = True"),
    ),
    row(
        "autograd.grad",
        "GB9186",
        BreakCause.BACKWARD,
        a_function("return torch.autograd.grad((x * 2).sum(), x)[0]", "torch.ones(3, requires_grad=True)"),
        one(
            "outside of the compiled function",
            ("    return torch.autograd.grad((x * 2).sum(), x)[0]", "    return (x * 2).sum()"),
            (
                "call(compile(f), torch.ones(3, requires_grad=True))",
                "x = torch.ones(3, requires_grad=True)\nout(torch.autograd.grad(compile(f)(x), x)[0])",
            ),
        ),
        one("trace_autograd_ops = True", settings="torch._dynamo.config.trace_autograd_ops = True"),
    ),
    row(
        "a property that raises AttributeError",
        "GB0088",
        BreakCause.RAISES,
        """
class Config:
    @property
    def scale(self):
        return self.table["scale"]
    def __getattr__(self, name):
        if name == "scale":
            return 3
        raise AttributeError(name)
config = Config()
def f(x):
    if not torch.compiler.is_compiling(): plain()
    return (x + 1) * config.scale
call(compile(f), torch.ones(2))
""",
        fewer(
            "avoid the exception",
            ("config.scale\n", "scale\n"),
            ("config = Config()", "scale = Config().scale"),
            plain=0,
        ),
        plain=1,
    ),
    row(
        "nn.Parameter",
        "GB0264",
        BreakCause.PARAMETER,
        a_function("return x + torch.nn.Parameter(torch.ones(3))"),
        one(
            "Make the parameter before",
            ("def f(x)", "def f(x, p)"),
            ("torch.nn.Parameter(torch.ones(3))\n", "p\n"),
            ("call(compile(f), torch.ones(3))", "call(compile(f), torch.ones(3), torch.nn.Parameter(torch.ones(3)))"),
        ),
        one(
            "graph_break_on_nn_param_ctor = False", settings="torch._dynamo.config.graph_break_on_nn_param_ctor = False"
        ),
    ),
    row(
        "LSTM that gets a PackedSequence",
        "GB0014",
        BreakCause.RNN,
        "from torch.nn.utils.rnn import pack_padded_sequence\nm = torch.nn.LSTM(3, 3, batch_first=True)\n"
        + a_function(
            "return m(p)[1][0] * 2",
            "pack_padded_sequence(torch.ones(2, 4, 3), torch.tensor([4, 2]), batch_first=True)",
            "p",
        ),
        nothing("Where they get no PackedSequence", settings="torch._dynamo.config.allow_rnn = True"),
        breaks=1,
    ),
    row(
        "LSTM",
        "GB0014",
        BreakCause.RNN,
        "m = torch.nn.LSTM(3, 3)\n"
        + a_function("if not torch.compiler.is_compiling(): plain()\nreturn m(x + 1)[0] * 2", "torch.ones(2, 3)"),
        fewer("allow_rnn = True", settings="torch._dynamo.config.allow_rnn = True", plain=0),
        plain=1,
    ),
    row(
        "a scheduler's wrapper of step",
        "GB0007",
        BreakCause.SCHEDULED_STEP,
        """
m = torch.nn.Linear(3, 3)
o = torch.optim.SGD(m.parameters(), lr=torch.tensor(0.1))
s = torch.optim.lr_scheduler.ExponentialLR(o, 0.5)
def step():
    o.step()
c = compile(step)
m(torch.ones(2, 3)).sum().backward()
call(c)
""",
        expected("expect this break", "call(c)\ncall(c)", breaks=2),
        breaks=2,
    ),
    row(
        "a scheduler and torch.optim's own break",
        "GB0025",
        "optimizer",
        """
m = torch.nn.Linear(3, 3)
o = torch.optim.SGD(m.parameters(), lr=torch.tensor(0.1))
s = torch.optim.lr_scheduler.ExponentialLR(o, 0.5)
def step():
    o.step()
c = compile(step)
m(torch.ones(2, 3)).sum().backward()
call(c)
""",
        expected("the program needs no change", "call(c)", breaks=2),
        breaks=2,
    ),
    # --- codes for which PyTorch's hint is shown ---
    row(
        "an intermediate that requires grad",
        "GB8985",
        "no advice",
        a_function("y = x.clone().requires_grad_()\nreturn y * 2"),
        one(
            "Call .detach()",
            ("return y * 2", "return (y * 2).detach()"),
            counts_only="the result does not require grad",
        ),
    ),
    row(
        ".data of an intermediate",
        "GB0056",
        "no advice",
        a_function("y = x + 1\ny.data = torch.zeros(3)\nreturn y * 2"),
        one("Don't mutate `.data`", ("y.data = torch.zeros(3)", "y = torch.zeros(3)")),
    ),
    row(
        "deepcopy of a tensor",
        "GB4198",
        "no advice",
        a_function("return copy.deepcopy(x + 1) * 2", top="import copy"),
        one("Avoid calling copy.deepcopy()", ("copy.deepcopy(x + 1)", "(x + 1).clone()")),
    ),
    row(
        "json",
        "GB0156",
        BreakCause.OPAQUE_METHOD,
        a_function("return x + json.loads(s)", "torch.ones(3), '3'", "x, s", top="import json"),
        one(BEFORE, ("json.loads(s)", "s"), ("'3'", "json.loads('3')")),
    ),
    row(
        "resize_",
        "GB0126",
        "no advice",
        a_function("y = x + 1\ny.resize_(2)\nreturn y * 2"),
        one("no advice of its own", ("    y.resize_(2)\n", "    y = y[:2]\n")),
    ),
    row(
        "a class is defined",
        "GB8977",
        BreakCause.CLASS_BODY,
        a_function("class A: pass\nreturn x + 1"),
        one("outside of the compiled function", ("    class A: pass\n", ""), ("def f(x)", "class A: pass\ndef f(x)")),
    ),
    row(
        "a custom jvp",
        "GB0144",
        "no advice",
        """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
    @staticmethod
    def jvp(ctx, g):
        return g * 2
def f(x):
    return F.apply(x)
call(compile(f), torch.ones(4, requires_grad=True))
""",
        one("Remove the custom `jvp` method", ("    @staticmethod\n    def jvp(ctx, g):\n        return g * 2\n", "")),
    ),
    row(
        "a generator of random numbers",
        "GB0055",
        "no advice",
        a_function("return x + torch.rand(3, generator=g)", top="g = torch.Generator().manual_seed(0)"),
        one(
            "no advice of its own",
            ("torch.rand(3, generator=g)\n", "r\n"),
            ("def f(x)", "def f(x, r)"),
            ("torch.ones(3)", "torch.ones(3), torch.rand(3, generator=g)"),
        ),
    ),
    row(
        "id() of a new object",
        "GB9316",
        "no advice",
        a_function("if not torch.compiler.is_compiling(): plain()\ny = x + 1\nreturn y + (id(y) > 0)"),
        fewer("Avoid comparing id()", ("(id(y) > 0)", "1"), plain=0),
        plain=1,
    ),
    row(
        "np.save",
        "GB0294",
        BreakCause.NUMPY,
        a_function("y = x + 1\nnp.save(b, y.numpy())\nreturn y * 2", top="import io, numpy as np\nb = io.BytesIO()"),
        one(BEFORE, ("    np.save(b, y.numpy())\n", "")),
    ),
    row(
        "a sparse tensor",
        "GB0277",
        "no advice",
        a_function("return x.to_sparse().to_dense() + 1", "torch.ones(3, 3)"),
        one("move sparse tensor creation outside", (".to_sparse().to_dense()", "")),
    ),
    row(
        "a generator",
        "",
        "no advice",
        "def g(x):\n    if not torch.compiler.is_compiling(): plain()\n    yield x + 1\n"
        "out(list(compile(g)(torch.ones(3))))\n",
        fewer("Call a generator from inside", ("compile(g)(torch", "compile(lambda x: list(g(x)))(torch"), plain=0),
        plain=1,
    ),
    row(
        "grad_fn",
        "GB0104",
        "no advice",
        a_function(
            "if not torch.compiler.is_compiling(): plain()\ny = x + 1\nn = y.grad_fn\nreturn y * 2",
            "torch.ones(3, requires_grad=True)",
        ),
        fewer("no advice of its own", ("    n = y.grad_fn\n", ""), plain=0),
        plain=1,
    ),
    row(
        "an operator without a fake implementation",
        "GB0090",
        "no advice",
        """
lib = torch.library.Library("advised", "FRAGMENT")
lib.define("plain(Tensor x) -> Tensor")
lib.impl("plain", lambda x: x + 1, "CPU")

def f(x):
    return torch.ops.advised.plain(x + 1) * 2

call(compile(f), torch.ones(4))
lib._destroy()
""",
        one("for how to fix", ("\ndef f(x)", '\nlib.impl("plain", lambda x: torch.empty_like(x), "Meta")\ndef f(x)')),
    ),
    row(
        "a method of C",
        "GB0156",
        BreakCause.OPAQUE_METHOD,
        a_function("return x + b.seek(0)", top="import io\nb = io.BytesIO()"),
        one(
            BEFORE,
            ("b.seek(0)\n", "n\n"),
            ("def f(x)", "def f(x, n)"),
            ("torch.ones(3)", "torch.ones(3), b.seek(0)"),
        ),
    ),
    row(
        "urandom",
        "GB0007",
        BreakCause.OPAQUE_FUNCTION,
        a_function("n = os.urandom(2)\nreturn x + 1", top="import os"),
        one(BEFORE, ("    n = os.urandom(2)\n", "")),
    ),
    row(
        "numpy's random numbers",
        "GB0033",
        BreakCause.ITEM_IN_CALL,
        a_function("return x + np.random.rand()", top="import numpy as np\nnp.random.seed(0)"),
        one(
            "draw random numbers before the call",
            ("np.random.rand()\n", "r\n"),
            ("def f(x)", "def f(x, r)"),
            ("torch.ones(3)", "torch.ones(3), torch.tensor(np.random.rand(), dtype=torch.float32)"),
        ),
    ),
    row(
        "numpy's random numbers as scalars",
        "",
        BreakCause.GUARDED_DATA,
        f"{SCALARS}\n" + a_function("return x + np.random.rand()", top="import numpy as np\nnp.random.seed(0)"),
        one(
            "Draw or read it before the call",
            ("np.random.rand()\n", "r\n"),
            ("def f(x)", "def f(x, r)"),
            ("torch.ones(3)", "torch.ones(3), torch.tensor(np.random.rand(), dtype=torch.float32)"),
            counts_only="the generators of numpy and of PyTorch give other numbers",
        ),
    ),
    row(
        "a branch on numpy's random numbers",
        "GB0033",
        BreakCause.ITEM_IN_CALL,
        a_function(
            "if np.random.rand() > 0.5:\n    return x + 1\nreturn x - 1", top="import numpy as np\nnp.random.seed(0)"
        ),
        one(
            "draw random numbers before the call",
            (
                "if np.random.rand() > 0.5:\n        return x + 1\n    return x - 1",
                "return torch.where(r > 0.5, x + 1, x - 1)",
            ),
            ("def f(x)", "def f(x, r)"),
            ("torch.ones(3)", "torch.ones(3), torch.tensor(np.random.rand())"),
        ),
        nothing("neither a branch", settings=SCALARS),
    ),
]

ROWS += rows_of_blocks.ROWS
