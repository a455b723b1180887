"""Rows for guards on objects, functions and modules, on PyTorch's state, and on values that cross a graph break."""

from __future__ import annotations

from typing import Optional

import torch
from harness import expected, fewer, row

from depyf.diagnosis.guard_advice import GuardCause as C
from depyf.diagnosis.guard_advice import ValueOrigin as O

MEMBER = "each member needs a compilation of its own"
NAMED = "each class or function needs a compilation of its own"

OBJECTS = [
    row(
        "an attribute that becomes a submodule, and None again",
        C.MOVED,
        """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.gate = None
                self.scale = torch.nn.Parameter(torch.ones(2))

            def forward(self, x):
                y = x * self.scale
                return y if self.gate is None else y * self.gate(x)

        net = Net()
        c = compile(net)
        call(c, torch.ones(2))
        net.gate = torch.nn.Identity()
        call(c, torch.ones(2))
        net.gate = None
        call(c, torch.ones(2))
        """,
        {"graphs": 3},
        fewer(
            "register it as None",
            ("self.gate = None\n        self", 'self.register_module("gate", None)\n        self'),
            graphs=2,
        ),
        says=("self.gate is of class Identity, and was None", "self.gate is None, as a submodule"),
        never=("missing",),
    ),
    row(
        "enum",
        C.MEMBER,
        """
        import enum

        class Mode(enum.Enum):
            TRAIN = 1
            EVAL = 2
            TEST = 3

        def f(x, m):
            return x * 2 if m is Mode.TRAIN else x + 1

        c = compile(f)
        for m in Mode:
            call(c, torch.ones(2), m)
        """,
        {"graphs": 3},
        expected(MEMBER, "for m in Mode:\n    call(c, torch.ones(2), m)", graphs=3),
        says=("m is Mode.EVAL, and was compiled for Mode.TRAIN",),
        never=("create",),
    ),
    row(
        "int enum",
        C.MEMBER,
        """
        import enum

        class Mode(enum.IntEnum):
            TRAIN = 1
            EVAL = 2

        def f(x, m):
            return x * 2 if m == Mode.TRAIN else x + 1

        c = compile(f)
        for m in Mode:
            call(c, torch.ones(2), m)
        """,
        {"graphs": 2},
        expected(MEMBER, "for m in Mode:\n    call(c, torch.ones(2), m)", graphs=2),
        says=("m is Mode.EVAL, and was compiled for Mode.TRAIN",),
    ),
    row(
        "flags",
        C.MEMBER,
        """
        import enum

        class Mode(enum.IntFlag):
            FAST = 1
            EXACT = 2

        def f(x, m):
            return x * 2 if m & Mode.FAST else x + 1

        c = compile(f)
        for m in (Mode.FAST, Mode.FAST | Mode.EXACT):
            call(c, torch.ones(2), m)
        """,
        {"graphs": 2},
        expected(MEMBER, "call(c, torch.ones(2), Mode.FAST | Mode.EXACT)", graphs=2),
        says=("m is Mode.FAST|Mode.EXACT, and was compiled for Mode.FAST",),
        never=("_value_",),
    ),
    row(
        "enum of strings",
        C.MEMBER,
        """
        import enum

        class Mode(str, enum.Enum):
            TRAIN = "t"
            EVAL = "e"

        def f(x, m):
            return x * 2 if m == Mode.TRAIN else x + 1

        c = compile(f)
        for m in Mode:
            call(c, torch.ones(2), m)
        """,
        {"graphs": 2},
        expected(MEMBER, "call(c, torch.ones(2), Mode('t'))", graphs=2),
        says=("m is Mode.EVAL, and was compiled for Mode.TRAIN",),
    ),
    row(
        "enum of a module",
        C.MEMBER,
        """
        import enum

        class Mode(enum.Enum):
            TRAIN = 1
            EVAL = 2

        class Switch(torch.nn.Module):
            def forward(self, x):
                return x * 2 if self.mode is Mode.TRAIN else x + 1

        m = Switch()
        c = compile(m)
        for m.mode in Mode:
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        expected(MEMBER, "m.mode = Mode.TRAIN\ncall(c, torch.ones(2))", graphs=2),
        says=("self.mode is Mode.EVAL, and was compiled for Mode.TRAIN",),
    ),
    row(
        "class as an argument",
        C.NAMED,
        """
        class Two:
            k = 2

        class Three:
            k = 3

        def f(x, kind):
            return x * kind.k

        c = compile(f)
        for kind in (Two, Three):
            call(c, torch.ones(2), kind)
        """,
        {"graphs": 2},
        expected(NAMED, "call(c, torch.ones(2), Two)", graphs=2),
        says=("kind is Three, and was compiled for Two",),
        never=("create", "kind.k, too"),
    ),
    row(
        "built-in function as an argument",
        C.NAMED,
        """
        def f(x, g):
            return x + g([1, 2])

        c = compile(f)
        for g in (sum, max, len):
            call(c, torch.ones(2), g)
        """,
        {"graphs": 3},
        expected(NAMED, "call(c, torch.ones(2), max)", graphs=3),
        says=("g is max, and was compiled for sum",),
    ),
    row(
        "operation of torch as an argument",
        C.NAMED,
        """
        def f(x, g):
            return g(x)

        c = compile(f)
        for g in (torch.sin, torch.cos, torch.nn.functional.relu):
            call(c, torch.ones(2), g)
        """,
        {"graphs": 3},
        expected(NAMED, "call(c, torch.ones(2), torch.sin)", graphs=3),
        says=("g is torch.cos, and was compiled for torch.sin", "g is torch.nn.functional.relu"),
    ),
    row(
        "a function of Python, then one of C",
        C.NAMED,
        """
        import torch.nn.functional as F

        def f(x, act):
            return act(x)

        c = compile(f)
        for g in (F.relu, F.gelu, F.silu):
            call(c, torch.ones(2), g)
        """,
        {"graphs": 3},
        expected(NAMED, "call(c, torch.ones(2), F.gelu)", graphs=3),
        says=("act is torch._C._nn.gelu, and was compiled for torch.nn.functional.relu",),
    ),
    row(
        "class that is made for each call",
        C.IDENTITY,
        """
        KEPT = []

        def make():
            class Two:
                k = 2

            KEPT.append(Two)
            return Two

        def f(x, kind):
            return x * kind.k

        c = compile(f)
        for number in range(3):
            call(c, torch.ones(2), make())
        """,
        {"graphs": 3},
        fewer(
            "create it once and reuse it",
            ("c = compile(f)", "kind = make()\nc = compile(f)"),
            ("torch.ones(2), make())", "torch.ones(2), kind)"),
            graphs=1,
        ),
    ),
    row(
        "metadata of a tensor subclass",
        C.METADATA,
        """
        class Scaled(torch.Tensor):
            @staticmethod
            def __new__(cls, a, k):
                return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)

            def __init__(self, a, k):
                self.a, self.k = a, k

            def __tensor_flatten__(self):
                return ["a"], {"k": self.k, "version": 1}

            @staticmethod
            def __tensor_unflatten__(inner, metadata, *_):
                return Scaled(inner["a"], metadata["k"])

            @classmethod
            def __torch_dispatch__(cls, f, types, args=(), kwargs=None):
                return Scaled(f(args[0].a, *args[1:], **(kwargs or {})), args[0].k)

        def f(x):
            return x * 2

        c = torch.compile(f, backend="aot_eager")
        for k in (1.0, 2.0):
            x = Scaled(torch.ones(3), k)
            asked(c, x)
            out(c(x).a)
        """,
        {"compilations": 2},
        expected("each value of the metadata needs a compilation", "c(Scaled(torch.ones(3), 1.0))", compilations=2),
        fewer(
            "__metadata_guard__ of its class",
            (
                "    @classmethod\n",
                "    @classmethod\n    def __metadata_guard__(cls, one, other):\n        return True\n\n"
                "    @classmethod\n",
            ),
            compilations=1,
        ),
        says=("metadata k of x is 2.0, and was compiled for 1.0",),
        never=("___check_metadata",),
    ),
    row(
        "class of an object",
        C.CLASS,
        """
        class Two:
            k = 2

        class Three:
            k = 3

        def f(x, a):
            return x * a.k

        c = compile(f)
        for a in (Two(), Three()):
            call(c, torch.ones(2), a)
        """,
        {"graphs": 2},
        fewer("pass the same class each time", ("Three()):", "Two()):"), counts_only="another object", graphs=1),
        expected("each class needs a compilation", "call(c, torch.ones(2), Two())", graphs=2),
    ),
    row(
        "list or tuple",
        C.CLASS,
        """
        def f(xs):
            return xs[0] + 1

        c = compile(f)
        for kind in (list, tuple):
            call(c, kind([torch.ones(2)]))
        """,
        {"graphs": 2},
        fewer("pass the same class each time", ("call(c, kind(", "call(c, list("), graphs=1),
    ),
    row(
        "tensor or number",
        C.FLOAT,
        """
        def f(x, n):
            return x + n

        c = compile(f)
        for n in (1.5, torch.tensor(1.5)):
            call(c, torch.ones(2), n)
        """,
        {"graphs": 2},
        fewer("pass it as a tensor", ("torch.ones(2), n)", "torch.ones(2), torch.as_tensor(n))"), graphs=1),
    ),
    row(
        "module that is exchanged",
        C.CLASS,
        """
        torch.manual_seed(0)
        m = torch.nn.Sequential(torch.nn.Linear(4, 4))
        c = compile(m)
        for part in (torch.nn.Tanh(), torch.nn.ReLU()):
            m[0] = part
            call(c, torch.ones(3, 4))
        """,
        {"graphs": 2},
        expected("each class needs a compilation", "m[0] = torch.nn.Tanh()\ncall(c, torch.ones(3, 4))", graphs=2),
    ),
    row(
        "function of the program as an argument",
        C.FUNCTION,
        """
        def one(x):
            return x + 1

        def two(x):
            return x + 2

        def f(x, g):
            return g(x)

        c = compile(f)
        for g in (one, two):
            call(c, torch.ones(2), g)
        """,
        {"graphs": 2},
        expected("each function, by its code, needs a compilation", "call(c, torch.ones(2), one)", graphs=2),
        fewer(
            "that one def or lambda expression makes can share an entry",
            (
                "c = compile(f)",
                "def add(n):\n    return lambda x: x + n\n\n"
                "one, two = add(torch.tensor(1)), add(torch.tensor(2))\nc = compile(f)",
            ),
            graphs=1,
        ),
    ),
    row(
        "bound method of an object",
        (C.NUMBER, O.ATTRIBUTE),
        """
        class Scale:
            def __init__(self, k):
                self.k = k

            def g(self, t):
                return t * self.k

        def f(x, g):
            return g(x)

        c = compile(f)
        for k in range(2, 5):
            call(c, torch.ones(2), Scale(k).g)
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=1),
        fewer("make it a tensor", ("self.k = k", "self.k = torch.tensor(k)"), graphs=1),
    ),
    row(
        "partial of each call",
        (C.NUMBER, O.ATTRIBUTE),
        """
        import functools

        def scale(k, t):
            return t * k

        def f(x, g):
            return g(x)

        c = compile(f)
        for k in range(2, 5):
            call(c, torch.ones(2), functools.partial(scale, k))
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=1),
        fewer("make it a tensor", ("(scale, k)", "(scale, torch.tensor(k))"), graphs=1),
    ),
    row(
        "hooks of a module",
        C.MODULE_HOOKS,
        """
        torch._dynamo.config.skip_nnmodule_hook_guards = False
        torch.manual_seed(0)
        m = torch.nn.Sequential(torch.nn.Linear(2, 2))
        c = compile(m)
        call(c, torch.ones(2))
        m[0].register_forward_hook(lambda module, args, result: result + 1)
        call(c, torch.ones(2))
        """,
        {"graphs": 2},
        fewer(
            "register and remove hooks before the first call",
            (
                "c = compile(m)\n",
                "m[0].register_forward_hook(lambda module, args, result: result + 1)\nc = compile(m)\n",
            ),
            (
                "call(c, torch.ones(2))\nm[0].register_forward_hook(lambda module, args, result: result + 1)\n",
                "call(c, torch.ones(2))\n",
            ),
            counts_only="the hook runs earlier",
            graphs=1,
        ),
        says=("has forward hooks, and was compiled without",),
    ),
    row(
        "backend that is made anew",
        C.BACKEND,
        """
        def f(x):
            return x + 1

        for number in range(2):
            c = torch.compile(f, backend=lambda graph, inputs: backend(graph, inputs))
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        fewer(
            "make the backend once",
            ("for number", "own = lambda graph, inputs: backend(graph, inputs)\nfor number"),
            ("backend=lambda graph, inputs: backend(graph, inputs))", "backend=own)"),
            graphs=1,
        ),
    ),
    row(
        "method of a dict that is gone",
        C.GONE,
        """
        def f(x, g):
            return x + g("k", 2)

        c = compile(f)
        for number in range(2):
            call(c, torch.ones(2), {}.get)
        """,
        {"graphs": 2},
        fewer(
            "create it once, keep it alive",
            ("c = compile(f)", "g = {}.get\nc = compile(f)"),
            ("{}.get)", "g)"),
            graphs=1,
        ),
        never=("this does not hold",),
    ),
]

SAME = "set it once, around all calls"
EACH = "each such state needs a compilation"

STATES = [
    row(
        "grad mode",
        "state: grad_mode",
        """
        def f(x):
            return x + 1

        c = compile(f)
        for mode in (True, False):
            with torch.set_grad_enabled(mode):
                call(c, torch.ones(2))
        """,
        {"graphs": 2},
        fewer("call under the same torch.no_grad()", ("set_grad_enabled(mode)", "no_grad()"), graphs=1),
        expected(EACH, "with torch.no_grad():\n    call(c, torch.ones(2))", graphs=2),
        says=("grad mode is off; this entry was compiled with grad mode on",),
    ),
    row(
        "inference mode",
        "state: grad_mode",
        """
        def f(x):
            return x + 1

        c = compile(f)
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                call(c, torch.ones(2))
        """,
        {"graphs": 2},
        fewer(
            "call under the same torch.no_grad() or inference mode", ("with mode()", "with torch.no_grad()"), graphs=1
        ),
        expected(EACH, "with torch.inference_mode():\n    call(c, torch.ones(2))", graphs=2),
    ),
    row(
        "autocast",
        "state: autocast",
        """
        def f(x):
            return (x @ x).float()

        c = compile(f)
        for enabled in (False, True):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                call(c, torch.ones(2, 2))
        """,
        {"graphs": 2},
        fewer("in the same way around each call", ("enabled=enabled", "enabled=True"), graphs=1),
        fewer(
            "or inside of the compiled function",
            (
                "    return (x @ x).float()",
                '    with torch.autocast("cpu", dtype=torch.bfloat16):\n        return (x @ x).float()',
            ),
            ('    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):', "    if True:"),
            graphs=1,
        ),
        expected("expect one compilation for each", "call(c, torch.ones(2, 2))", graphs=2),
    ),
    row(
        "dtype of autocast",
        "state: autocast",
        """
        def f(x):
            return (x @ x).float()

        c = compile(f)
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype=dtype):
                call(c, torch.ones(2, 2))
        """,
        {"graphs": 2},
        fewer("in the same way around each call", ("dtype=dtype", "dtype=torch.bfloat16"), graphs=1),
        says=("the dtype of autocast for the CPU is torch.float16",),
    ),
    row(
        "default dtype",
        "state: any",
        """
        def f(x):
            return x + torch.ones(2, dtype=x.dtype)

        c = compile(f)
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            call(c, torch.ones(2, dtype=torch.float32))
        """,
        {"graphs": 2},
        expected(EACH, "torch.set_default_dtype(torch.float32)\ncall(c, torch.ones(2))", graphs=2),
        fewer(SAME, ("set_default_dtype(dtype)", "set_default_dtype(torch.float32)"), graphs=1),
        says=("the default dtype is torch.float64",),
    ),
    row(
        "deterministic algorithms",
        "state: any",
        """
        def f(x):
            return x + 1

        c = compile(f)
        for mode in (False, True):
            torch.use_deterministic_algorithms(mode)
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        expected(EACH, "torch.use_deterministic_algorithms(False)\ncall(c, torch.ones(2))", graphs=2),
        fewer(SAME, ("algorithms(mode)", "algorithms(True)"), graphs=1),
        says=("torch.use_deterministic_algorithms is on",),
    ),
    row(
        "reduced precision",
        "state: any",
        """
        def f(x):
            return x + 1

        c = compile(f)
        before = torch.backends.cuda.matmul.allow_tf32
        for allowed in (before, not before):
            torch.backends.cuda.matmul.allow_tf32 = allowed
            call(c, torch.ones(2))
        torch.backends.cuda.matmul.allow_tf32 = before
        """,
        {"graphs": 2},
        expected(EACH, "call(c, torch.ones(2))", graphs=2),
        fewer(SAME, ("allow_tf32 = allowed", "allow_tf32 = before"), graphs=1),
    ),
    row(
        "overrides of torch functions that are off",
        "state: any",
        """
        def f(x):
            return x + 1

        c = compile(f)
        call(c, torch.ones(2))
        with torch._C.DisableTorchFunctionSubclass():
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        expected(EACH, "call(c, torch.ones(2))", graphs=2),
        fewer(SAME, ("with torch._C.DisableTorchFunctionSubclass():", "if True:"), graphs=1),
    ),
    row(
        "number of threads",
        "state: num_threads",
        """
        def f(x):
            return x + 1

        c = compile(f)
        for more in (0, 1):
            torch.set_num_threads(2 + more)
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        fewer("call torch.set_num_threads once", ("set_num_threads(2 + more)", "set_num_threads(2)"), graphs=1),
        says=("the number of threads is 3",),
    ),
    row(
        "transform around the compiled function",
        "state: transform",
        """
        def f(x):
            if not torch.compiler.is_compiling():
                plain()
            return x.sin()

        c = compile(f)
        call(c, torch.ones(2))
        out(torch.vmap(lambda t: call(c, t))(torch.ones(3, 2)))
        """,
        {"plain": 1, "graphs": 1},
        fewer(
            "compile the function that applies the transform",
            (
                "out(torch.vmap(lambda t: call(c, t))(torch.ones(3, 2)))",
                "out(compile(lambda x: torch.vmap(f)(x))(torch.ones(3, 2)))",
            ),
            counts_only="the inner result is not recorded",
            plain=0,
        ),
        own_report="its call did not compile, so torch reports no recompilation",
    ),
    row(
        "default device",
        C.MODES,
        """
        def f(x):
            return x + torch.ones(2)

        c = compile(f)
        call(c, torch.ones(2))
        torch.set_default_device("cpu")
        call(c, torch.ones(2))
        torch.set_default_device(None)
        """,
        {"graphs": 2},
        expected(EACH, "call(c, torch.ones(2))", graphs=2),
        fewer(
            SAME,
            ("c = compile(f)\n", "c = compile(f)\ntorch.set_default_device('cpu')\n"),
            ('call(c, torch.ones(2))\ntorch.set_default_device("cpu")\n', "call(c, torch.ones(2))\n"),
            graphs=1,
        ),
        never=("expect two compilations",),
    ),
    row(
        "two default devices",
        C.MODES,
        """
        def f(x):
            return x + 1

        c = compile(f)
        for device in ("cpu", "meta"):
            torch.set_default_device(device)
            call(c, torch.ones(2, device="cpu"))
        torch.set_default_device(None)
        """,
        {"graphs": 2},
        expected(EACH, 'torch.set_default_device("cpu")\ncall(c, torch.ones(2, device="cpu"))', graphs=2),
        fewer(SAME, ("set_default_device(device)", 'set_default_device("cpu")'), graphs=1),
        says=("the default device is",),
    ),
    row(
        "torch function mode",
        C.MODES,
        """
        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        def f(x):
            return x + 1

        c = compile(f)
        call(c, torch.ones(2))
        with Mode():
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        expected(EACH, "call(c, torch.ones(2))", graphs=2),
        fewer(SAME, ("with Mode():", "if True:"), graphs=1),
    ),
    row(
        "saved-tensors hooks",
        C.HOOKS,
        """
        same = torch.fx.symbolic_trace(lambda t: t)

        def f(x):
            return x.sin()

        c = compile(f)
        call(c, torch.ones(2, requires_grad=True))
        with torch.autograd.graph.saved_tensors_hooks(same, same):
            call(c, torch.ones(2, requires_grad=True))
        """,
        {"graphs": 2},
        expected(EACH, "call(c, torch.ones(2, requires_grad=True))", graphs=2),
        fewer(SAME, ("with torch.autograd.graph.saved_tensors_hooks(same, same):", "if True:"), graphs=1),
    ),
    row(
        "guards that a filter has left",
        C.DTYPE,
        """
        def f(x, n):
            return (x + n).float()

        def keep(guards):
            return [guard.guard_type != "EQUALS_MATCH" for guard in guards]

        c = compile(f, options={"guard_filter_fn": keep})
        for dtype in (torch.float32, torch.float64):
            x = torch.ones(2, dtype=dtype)
            call(c, x, 2)
        """,
        {"graphs": 2},
        fewer("convert before the call", ("call(c, x, 2)", "call(c, x.float(), 2)"), graphs=1),
    ),
    row(
        "miss before guards are skipped",
        C.NUMBER,
        """
        def f(x, n):
            return x + n

        c = compile(f)
        for n in (2, 3):
            call(c, torch.ones(2), n)
        torch.compiler.set_stance(skip_guard_eval_unsafe=True)
        out(c(torch.ones(2), 3))
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=1),
    ),
    row(
        "miss under a stance",
        C.NUMBER,
        """
        def f(x, n):
            if not torch.compiler.is_compiling():
                plain()
            return x + n

        c = compile(f)
        call(c, torch.ones(2), 2)
        torch.compiler.set_stance("eager_on_recompile")
        call(c, torch.ones(2), 3)
        """,
        {"plain": 1, "graphs": 1},
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), plain=0, graphs=1),
        own_report="nothing is compiled again, so torch reports no recompilation",
    ),
]

RESUMED = "why does not analyse resume functions"
BREAK = "torch._dynamo.graph_break()\n"
WITHOUT_BREAK = (f"    {BREAK}", "")

CROSSING = [
    row(
        "size behind a graph break",
        (C.SIZE, O.INTERMEDIATE),
        """
        def f(x):
            h = x * 2
            torch._dynamo.graph_break()
            return h + 1

        c = compile(f)
        for n in (4, 5, 6):
            x = torch.ones(n)
            call(c, x)
        """,
        {"graphs": 4},
        fewer(
            "remove the graph break and mark them",
            WITHOUT_BREAK,
            ("    call(c, x)", "    torch._dynamo.mark_dynamic(x, 0)\n    call(c, x)"),
            graphs=1,
        ),
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=2),
        own_why=RESUMED,
    ),
    row(
        "branch on a size behind a graph break",
        (C.SIZES, O.INTERMEDIATE),
        """
        def f(x):
            h = x * 2
            torch._dynamo.graph_break()
            return h + 1 if h.shape[0] > 3 else h - 1

        c = compile(f)
        for n in (4, 5, 3, 2):
            call(c, torch.ones(n))
        """,
        {"graphs": 5},
        expected("each side needs a compilation", "for n in (7, 2):\n    call(c, torch.ones(n))", graphs=5),
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=3),
        fewer("or remove the graph break", WITHOUT_BREAK, graphs=3),
        own_why=RESUMED,
    ),
    row(
        "stride behind a graph break",
        (C.STRIDE, O.INTERMEDIATE),
        """
        def f(x, swap):
            h = x.t() if swap else x
            torch._dynamo.graph_break()
            return h + 1

        c = compile(f)
        for swap in (False, True):
            call(c, torch.arange(9.0).reshape(3, 3), swap)
        """,
        {"graphs": 3},
        fewer(
            "call contiguous() on it in the function, before the break", ("x.t() if", "x.t().contiguous() if"), graphs=2
        ),
        own_why=RESUMED,
    ),
    row(
        "number of dimensions behind a graph break",
        (C.RANK, O.INTERMEDIATE),
        """
        def f(x):
            h = x * 2
            torch._dynamo.graph_break()
            return h.sum()

        c = compile(f)
        for x in (torch.ones(4), torch.ones(2, 2)):
            call(c, x)
        """,
        {"graphs": 4},
        fewer("the same number of dimensions each time", ("call(c, x)", "call(c, x.reshape(4))"), graphs=2),
        own_why=RESUMED,
    ),
    row(
        "dtype behind a graph break",
        (C.DTYPE, O.INTERMEDIATE),
        """
        def f(x):
            h = x * 2
            torch._dynamo.graph_break()
            return (h + 1).float()

        c = compile(f)
        for dtype in (torch.float32, torch.float64):
            x = torch.ones(4, dtype=dtype)
            call(c, x)
        """,
        {"graphs": 4},
        fewer("convert the arguments", ("call(c, x)", "call(c, x.float())"), graphs=2),
        fewer("convert it in the function before the break", ("h = x * 2", "h = (x * 2).float()"), graphs=3),
        own_why=RESUMED,
    ),
    row(
        "requires_grad behind a graph break",
        (C.REQUIRES_GRAD, O.INTERMEDIATE),
        """
        def f(x):
            h = x * 2
            torch._dynamo.graph_break()
            return h + 1

        c = compile(f)
        for needed in (False, True):
            call(c, torch.ones(4, requires_grad=needed))
        """,
        {"graphs": 4},
        fewer("require grad, or not, each time", ("requires_grad=needed", "requires_grad=True"), graphs=2),
        own_why=RESUMED,
    ),
    row(
        "length behind a graph break",
        (C.LENGTH, O.INTERMEDIATE),
        """
        def f(x, n):
            hs = [x + i for i in range(n)]
            torch._dynamo.graph_break()
            return sum(hs)

        c = compile(f)
        for n in (2, 3):
            call(c, torch.ones(2), n)
        """,
        {"graphs": 4},
        fewer("remove the graph break", WITHOUT_BREAK, graphs=2),
        own_why=RESUMED,
    ),
    row(
        "int behind a graph break",
        (C.NUMBER, O.INTERMEDIATE),
        """
        def f(x):
            n = int(x.sum())
            return x * n

        c = compile(f)
        for k in (1, 2, 3):
            call(c, torch.full((4,), float(k)))
        """,
        {"graphs": 3},
        fewer("keep it a tensor until there (no .item()", ("int(x.sum())", "x.sum()"), graphs=1),
    ),
    row(
        "float behind a graph break",
        (C.FLOAT, O.INTERMEDIATE),
        """
        def f(x):
            a = x.sum().item()
            return x * a

        c = compile(f)
        for k in (1.5, 2.5, 3.5):
            call(c, torch.full((4,), k))
        """,
        {"graphs": 3},
        fewer("keep it a tensor until there (no .item()", ("x.sum().item()", "x.sum()"), graphs=1),
    ),
    row(
        "method that is made before a graph break",
        ["made anew at a graph break", (C.GONE, O.INTERMEDIATE)],
        """
        NAMES = {1: 2.0}

        @torch.compiler.disable
        def key_of(y):
            return 1

        def f(x):
            y = x + 1
            return y * NAMES.get(key_of(y))

        c = compile(f)
        for number in range(3):
            call(c, torch.ones(2))
        """,
        {"graphs": 4},
        fewer("remove the graph break", ("@torch.compiler.disable\n", ""), graphs=1),
        fewer(
            "call it on a line that does not break the graph",
            ("    return y * NAMES.get(key_of(y))", "    key = key_of(y)\n    return y * NAMES.get(key)"),
            graphs=2,
        ),
        own_why=RESUMED,
    ),
]


def without_gloo() -> Optional[str]:
    """Return why a process group can't be made, if so."""
    usable = torch.distributed.is_available() and torch.distributed.is_gloo_available()
    return None if usable else "this PyTorch has no process groups on the CPU"


ONE_PROCESS = """
import tempfile
store = torch.distributed.FileStore(tempfile.mktemp(), 1)
torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
"""

BLOCK = """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x) + 1

torch.manual_seed(0)
"""

WRAPPED = [
    row(
        "batch of DistributedDataParallel",
        C.SIZE,
        ONE_PROCESS
        + BLOCK
        + """
m = torch.nn.parallel.DistributedDataParallel(Block())
c = compile(m)
for n in (4, 5, 6):
    x = torch.ones(n, 2)
    out(c(x))
torch.distributed.destroy_process_group()
""",
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(",
            ("    out(c(x))", "    torch._dynamo.mark_dynamic(x, 0)\n    out(c(x))"),
            graphs=1,
        ),
        fewer("compile with dynamic=True", ("compile(m)", "compile(m, dynamic=True)"), graphs=1),
        skip=without_gloo,
    ),
    row(
        "batch of a module with fully_shard",
        C.SIZE,
        ONE_PROCESS
        + BLOCK
        + """
from torch.distributed.fsdp import fully_shard

mesh = torch.distributed.init_device_mesh("cpu", (1,))
m = fully_shard(Block(), mesh=mesh)
c = compile(m)
for n in (4, 5, 6):
    x = torch.ones(n, 2)
    out(c(x))
torch.distributed.destroy_process_group()
""",
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(",
            ("    out(c(x))", "    torch._dynamo.mark_dynamic(x, 0)\n    out(c(x))"),
            graphs=1,
        ),
        fewer("compile with dynamic=True", ("compile(m)", "compile(m, dynamic=True)"), graphs=1),
        skip=without_gloo,
    ),
]

ROWS = [*OBJECTS, *STATES, *CROSSING, *WRAPPED]
