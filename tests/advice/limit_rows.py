"""Rows for errors of compilations, for limits, and for entries that other threads make."""

from __future__ import annotations

from typing import Tuple

from break_rows import _other_codes, a_function
from harness import Remedy, Row, fewer

from depyf.diagnosis import break_advice, compile_errors, compiled_meanwhile

RULES = {
    "operation": compile_errors._FOR_OPERATION,
    "handled": compile_errors._FOR_HANDLED,
    "inductor": compile_errors._FOR_INDUCTOR,
    "backend": compile_errors._FOR_BACKEND,
    "exception": compile_errors._FOR_EXCEPTION,
    "limit": break_advice._FOR_LIMIT,
    "accumulated limit": break_advice._FOR_ACCUMULATED,
    "either limit": break_advice._FOR_EITHER_LIMIT,
    "suppressed": break_advice._FOR_SUPPRESSED,
    "constraint": "maybe_mark_dynamic, or no mark",
    "threads": compiled_meanwhile.ADVICE,
}

CONFIG = "torch._dynamo.config."
LENGTHS = """
%s
def f(x, k):
    if not torch.compiler.is_compiling(): plain()
    return x * len(k)
c = compile(f%s)
for i in range(6):
    out(c(torch.ones(2), [0] * i))
"""


HANDLED = "try:\n    y = %s\nexcept %s:\n    y = x * 2\nreturn y + 1"


def row(
    name: str, rule: str, program: str, *remedies: Remedy, says: str = "", never: Tuple[str, ...] = (), **before: int
) -> Row:
    said = (says,) if says else ()
    return Row(name, (rule,), program.lstrip("\n"), before, remedies, said, never, skip=_other_codes)


def handled(name: str, operation: str, error: str, size: str, says: str) -> Row:
    """Return a row of an operation that fails in a ``try`` of the program."""
    test = (HANDLED % (operation, error)).replace("\n", "\n    ")
    return row(
        name,
        "handled",
        a_function(HANDLED % (operation, error)),
        fewer(
            "an if on the shapes",
            (test, f"y = {operation} if {size} else x * 2\n    return y + 1"),
            raised=0,
            counts_only="the call raised before",
        ),
        fewer(
            "a function with torch.compiler.disable",
            ("def f(x)", "@torch.compiler.disable\ndef g(x)"),
            ("call(", "def f(x):\n    return g(x + 0)\ncall("),
            raised=0,
            counts_only="the call raised before",
        ),
        says=says,
        never=("fake implementation", "without torch.compile, too"),
        raised=1,
    )


ROWS = [
    row(
        "recompile limit",
        "limit",
        LENGTHS % (f"{CONFIG}recompile_limit = 2", ""),
        fewer("raise the limit", ("recompile_limit = 2", "recompile_limit = 8"), plain=0),
        says="4 calls ran as plain Python",
        plain=4,
    ),
    row(
        "recompile limit, and hits after it",
        "limit",
        LENGTHS % (f"{CONFIG}recompile_limit = 2", "") + "for i in range(3):\n    out(c(torch.ones(2), [0]))\n",
        fewer("raise the limit", ("recompile_limit = 2", "recompile_limit = 8"), plain=0),
        says="4 calls ran as plain Python",
        plain=4,
    ),
    row(
        "accumulated limit",
        "accumulated limit",
        LENGTHS % (f"{CONFIG}accumulated_recompile_limit = 2", ""),
        fewer(
            "accumulated_recompile_limit",
            ("accumulated_recompile_limit = 2", "accumulated_recompile_limit = 8"),
            plain=0,
        ),
        says="4 calls ran as plain Python",
        plain=4,
    ),
    row(
        "limit that raises",
        "either limit",
        LENGTHS % (f"{CONFIG}recompile_limit = 2; {CONFIG}fail_on_recompile_limit_hit = True", ""),
        fewer(
            "raise the limit", ("recompile_limit = 2", "recompile_limit = 8"), raised=0, counts_only="more calls run"
        ),
        says="the call raised FailOnRecompileLimitHit",
        raised=1,
    ),
    row(
        "limit with fullgraph",
        "either limit",
        LENGTHS % (f"{CONFIG}recompile_limit = 2", ", fullgraph=True"),
        fewer(
            "raise the limit", ("recompile_limit = 2", "recompile_limit = 8"), raised=0, counts_only="more calls run"
        ),
        says="the call raised FailOnRecompileLimitHit",
        raised=1,
    ),
    row(
        "accumulated limit with fullgraph",
        "either limit",
        LENGTHS % (f"{CONFIG}accumulated_recompile_limit = 2", ", fullgraph=True"),
        fewer(
            "accumulated_recompile_limit",
            ("accumulated_recompile_limit = 2", "accumulated_recompile_limit = 8"),
            raised=0,
            counts_only="more calls run",
        ),
        says="the call raised FailOnRecompileLimitHit",
        raised=1,
    ),
    row(
        "sizes that do not fit",
        "operation",
        a_function("return x @ y", "torch.ones(2, 3), torch.ones(2, 3)", "x, y"),
        fewer("correct what it is called with", ("x @ y", "x @ y.t()"), raised=0, counts_only="the call raised before"),
        says="(2, 3)",
        raised=1,
    ),
    row(
        "reshape to another size",
        "operation",
        a_function("return x.reshape(7)", "torch.ones(2, 3)"),
        fewer(
            "correct what it is called with",
            ("reshape(7)", "reshape(6)"),
            raised=0,
            counts_only="the call raised before",
        ),
        raised=1,
    ),
    row(
        "cat of other sizes",
        "operation",
        a_function("return torch.cat([x, y])", "torch.ones(2, 3), torch.ones(2, 4)", "x, y"),
        fewer(
            "correct what it is called with",
            ("torch.ones(2, 4)", "torch.ones(2, 3)"),
            raised=0,
            counts_only="the call raised before",
        ),
        raised=1,
    ),
    row(
        "an index out of bounds",
        "exception",
        a_function("return x[7]", "torch.ones(3)"),
        fewer(
            "may raise it without torch.compile, too", ("x[7]", "x[2]"), raised=0, counts_only="the call raised before"
        ),
        says="f raised IndexError",
        raised=1,
    ),
    handled("a view in a try", "x.view(7)", "RuntimeError", "x.numel() == 7", "program.py:2 handles RuntimeError"),
    handled("an index in a try", "x[7]", "LookupError", "len(x) > 7", "program.py:2 handles LookupError"),
    handled("cat in a try", "torch.cat([x, x[None]])", "Exception", "x.dim() == 2", "`cat` failed"),
    row(
        "a wrong fake implementation",
        "operation",
        """
@torch.library.custom_op("advised::wrong", mutates_args=())
def wrong(x: torch.Tensor) -> torch.Tensor:
    return x + 1
@wrong.register_fake
def _(x):
    raise ValueError("not for this")
def f(x):
    return wrong(x)
call(compile(f), torch.ones(3))
""",
        fewer(
            "the operator's fake implementation is wrong",
            ('    raise ValueError("not for this")', "    return torch.empty_like(x)"),
            raised=0,
            counts_only="the call raised before",
        ),
        raised=1,
    ),
    row(
        "a backend that raises",
        "backend",
        "def broken(graph, inputs):\n    raise ValueError('no')\n"
        + a_function("return x + 1").replace("compile(f)", "compile(f, backend=broken)"),
        fewer('backend="eager"', ("backend=broken", 'backend="eager"'), raised=0, counts_only="the call raised before"),
        raised=1,
    ),
    row(
        "Inductor raises",
        "inductor",
        """
import torch._inductor.config
def broken(graph):
    raise ValueError("no")
torch._inductor.config.post_grad_custom_pre_pass = broken
def f(x):
    return x + 1
try:
    call(compile(f, backend="inductor"), torch.ones(3))
finally:
    torch._inductor.config.post_grad_custom_pre_pass = None
""",
        fewer(
            'backend="aot_eager"',
            ('backend="inductor"', 'backend="aot_eager"'),
            raised=0,
            counts_only="the call raised before",
        ),
        raised=1,
    ),
    Row(
        "an error that is suppressed",
        ("suppressed",),
        "",
        {},
        (),
        skip=lambda: "an error of PyTorch that has no other advice can't be made on purpose",
    ),
    row(
        "mark_dynamic of a size that is a constant",
        "constraint",
        """
def f(x):
    return x + torch.ones(4)
x = torch.ones(4)
torch._dynamo.mark_dynamic(x, 0)
call(compile(f), x)
""",
        fewer(
            "maybe_mark_dynamic",
            ("torch._dynamo.mark_dynamic", "torch._dynamo.maybe_mark_dynamic"),
            raised=0,
            counts_only="the call raised before",
        ),
        fewer("no mark", ("torch._dynamo.mark_dynamic(x, 0)\n", ""), raised=0, counts_only="the call raised before"),
        raised=1,
    ),
    row(
        "mark_dynamic with a range that a branch divides",
        "constraint",
        """
def f(x):
    return x + 1 if x.shape[0] > 8 else x - 1
x = torch.ones(12)
torch._dynamo.mark_dynamic(x, 0, min=4, max=16)
call(compile(f), x)
""",
        fewer(
            "a range in which the code does the same",
            ("min=4", "min=9"),
            raised=0,
            counts_only="the call raised before",
        ),
        fewer(
            "maybe_mark_dynamic",
            ("torch._dynamo.mark_dynamic(x, 0, min=4, max=16)", "torch._dynamo.maybe_mark_dynamic(x, 0)"),
            raised=0,
            counts_only="the call raised before",
        ),
        says="marked dynamic for 4 <= x.size()[0] <= 16",
        raised=1,
    ),
    row(
        "mark_dynamic of one of two sizes that have to be equal",
        "constraint",
        """
def f(x, y):
    return x + y
x, y = torch.ones(4), torch.ones(4)
torch._dynamo.mark_dynamic(x, 0)
call(compile(f), x, y)
""",
        fewer(
            "mark all inputs that have to have the same size",
            ("torch._dynamo.mark_dynamic(x, 0)", "torch._dynamo.mark_dynamic(x, 0); torch._dynamo.mark_dynamic(y, 0)"),
            raised=0,
            counts_only="the call raised before",
        ),
        fewer(
            "maybe_mark_dynamic",
            ("torch._dynamo.mark_dynamic", "torch._dynamo.maybe_mark_dynamic"),
            raised=0,
            counts_only="the call raised before",
        ),
        raised=1,
    ),
    row(
        "one function in several threads",
        "threads",
        """
import threading, time
ready = threading.Event()
def f(x):
    return x + 1
def slow(graph, inputs):
    ready.set()
    time.sleep(1)
    return backend(graph, inputs)
c = compile(f, backend=slow)
def started(n):
    thread = threading.Thread(target=c, args=(torch.ones(n),))
    thread.start()
    return thread
first = started(2)
ready.wait()
rest = [started(n) for n in (3, 4, 5)]
for thread in (first, *rest):
    thread.join()
"""
        "",
        fewer(
            "dynamic=True",
            ("first = started(2)", "c(torch.ones(2))\nfirst = started(2)"),
            ("backend=slow)", "backend=slow, dynamic=True)"),
            graphs=1,
        ),
        fewer(
            "once for each kind of input",
            ("first = started(2)", "c(torch.ones(2)), c(torch.ones(3))\nfirst = started(2)"),
            graphs=2,
        ),
        says="another thread compiled the entry",
        graphs=4,
    ),
]
