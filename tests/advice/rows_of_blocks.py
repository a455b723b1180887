"""Rows for graph breaks in loops and blocks at which Dynamo can't resume, and for two breaks of one title."""

from __future__ import annotations

from harness import Row, fewer

from depyf.diagnosis.break_advice import BreakCause
from depyf.torch_trace.breaks import Unresumed

BREAK = "        torch._dynamo.graph_break()\n"
BODY = f"        x = x + 1\n        if not torch.compiler.is_compiling():\n            plain()\n{BREAK}"
MANAGER = "import contextlib\n\n@contextlib.contextmanager\ndef timed():\n    yield\n\n"
EXCEPT = "    except ValueError:\n        x = x * 2\n"


def _in_block(
    name: str, rule: Unresumed, opening: str, words: str, plain: int, top: str = "", start: str = "", end: str = ""
) -> Row:
    """Return a row of a break in a block that ``opening`` begins, after the lines ``start``. The second remedy puts the
    body of the block into a function."""
    block = f"{start}    {opening}:\n"
    program = f"{top}def f(x):\n{block}{BODY}{end}    return x\n\nc = compile(f)\ncall(c, torch.ones(3))\n"
    as_function = (
        f"def f(x):\n{block}{BODY}{end}",
        f"def body(x):\n    if True:\n{BODY}    return x\n\ndef f(x):\n{block}        x = body(x)\n{end}",
    )
    return Row(
        name,
        (BreakCause.ASKED_FOR, rule),
        program,
        {"plain": plain},
        (fewer("Remove it if it is yours", (BREAK, ""), plain=0), fewer(words, as_function, plain=0)),
    )


ROWS = [
    _in_block(
        "a break in the body of a loop", Unresumed.LOOP, "for i in range(3)", "put the body of the loop into", plain=3
    ),
    _in_block(
        "a break in a with block of a generator's context manager",
        Unresumed.CONTEXT,
        "with timed()",
        "put the body of the block into",
        plain=1,
        top=MANAGER,
    ),
    _in_block(
        "a break in a try block",
        Unresumed.FRAME,
        "try",
        "put the block that it is in into",
        plain=1,
        end=EXCEPT,
    ),
    _in_block(
        "a break in a try block after other operations",
        Unresumed.REST,
        "try",
        "put the block that it is in into",
        plain=1,
        start="    x = x.sin()\n    x = x.cos()\n",
        end=EXCEPT,
    ),
    Row(
        "an f-string of an int that has become dynamic",
        (BreakCause.TEXT,),
        "table = {f'k{i}': torch.ones(1) * i for i in range(9)}\n\n"
        "def f(x, n):\n    if not torch.compiler.is_compiling():\n        plain()\n    return x * table[f'k{n}']\n\n"
        "c = compile(f)\nfor n in (4, 5, 6):\n    call(c, torch.ones(3), n)\n",
        {"plain": 2, "graphs": 1},
        (
            fewer(
                "pass what it selects",
                ("def f(x, n)", "def f(x, w)"),
                ("table[f'k{n}']", "w"),
                ("torch.ones(3), n)", "torch.ones(3), table[f'k{n}'])"),
                plain=0,
            ),
            fewer("write int() around the number", ("k{n}", "k{int(n)}"), plain=0),
        ),
        own_why="the break is known when it is compiled with a dynamic number",
    ),
    Row(
        "a text that % makes of an int that has become dynamic",
        (BreakCause.FORMATTED,),
        "table = {f'k{i}': torch.ones(1) * i for i in range(9)}\n\n"
        "def f(x, n):\n    if not torch.compiler.is_compiling():\n        plain()\n    return x * table['k%d' % n]\n\n"
        "c = compile(f)\nfor n in (4, 5, 6):\n    call(c, torch.ones(3), n)\n",
        {"plain": 2, "graphs": 1},
        (
            fewer(
                "pass what it selects",
                ("def f(x, n)", "def f(x, w)"),
                ("table['k%d' % n]", "w"),
                ("torch.ones(3), n)", "torch.ones(3), table['k%d' % n])"),
                plain=0,
            ),
            fewer("an f-string with int()", ("'k%d' % n]", "f'k{int(n)}']"), plain=0),
        ),
        never=("may end the call",),
        own_why="the break is known when it is compiled with a dynamic number",
    ),
    Row(
        "the time and a random number",
        (BreakCause.CLOCK, BreakCause.RANDOM),
        "import random\nimport time\n\ndef f(x):\n    t = time.perf_counter()\n    x = x * 2\n"
        "    if random.random() > 2:\n        x = x + t\n    return x\n\nc = compile(f)\ncall(c, torch.ones(3))\n",
        {"breaks": 2},
        (
            fewer(
                "Read the time outside of the compiled function",
                ("def f(x):\n    t = time.perf_counter()\n", "def f(x, t, r):\n"),
                (
                    "    if random.random() > 2:\n        x = x + t\n    return x\n",
                    "    return torch.where(r > 2, x + t, x)\n",
                ),
                ("torch.ones(3))", "torch.ones(3), torch.tensor(time.perf_counter()), torch.tensor(random.random()))"),
                breaks=0,
            ),
        ),
        says=("Random.random (Attempted to call function marked as skipped). A random number of Python's random",),
    ),
]
