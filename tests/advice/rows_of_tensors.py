"""Rows for guards on tensors: sizes, strides, dtypes, gradients, aliases, marks."""

from __future__ import annotations

from harness import expected, fewer, nothing, row

from depyf.diagnosis.guard_advice import GuardCause as C
from depyf.diagnosis.guard_advice import ValueOrigin as O

STATIC_PARAMETERS = "torch._dynamo.config.force_parameter_static_shapes = False"
STATIC_MODULES = "torch._dynamo.config.force_nn_module_property_static_shapes = False"
MARK = "torch._dynamo.mark_dynamic(x, 0)"

SIZES = [
    row(
        "size of an argument",
        C.SIZE,
        """
        def f(x):
            return x + 1

        c = compile(f)
        for n in (4, 5, 6):
            x = torch.ones(n)
            call(c, x)
        """,
        {"graphs": 2},
        fewer(MARK, ("    call(c, x)", f"    {MARK}\n    call(c, x)"), graphs=1),
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=1),
        fewer(
            "pad to one size",
            ("call(c, x)", "call(c, torch.nn.functional.pad(x, (0, 8 - n)))"),
            counts_only="results are padded",
            graphs=1,
        ),
        says=("x has size 5 in dimension 0, and was compiled for 4",),
    ),
    row(
        "two sizes of one tensor",
        C.SIZE,
        """
        def f(x):
            return x + 1

        c = compile(f)
        for n in (4, 5, 6):
            x = torch.ones(n, n + 1)
            call(c, x)
        """,
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(x, [0, 1])",
            ("    call(c, x)", "    torch._dynamo.mark_dynamic(x, [0, 1])\n    call(c, x)"),
            graphs=1,
        ),
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=1),
        says=("x has size 5 in dimension 0, and was compiled for 4; it has size 6 in dimension 1",),
        never=("mark_dynamic(x, 0)",),
    ),
    row(
        "three of four sizes of one tensor",
        C.SIZE,
        """
        def f(x):
            return x * 2

        c = compile(f)
        for n in (4, 5):
            x = torch.ones(n, 3, n + 2, n + 3)
            call(c, x)
        """,
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(x, [0, 2, 3])",
            ("    call(c, x)", "    torch._dynamo.mark_dynamic(x, [0, 2, 3])\n    call(c, x)"),
            graphs=1,
        ),
    ),
    row(
        "sizes of two tensors",
        C.SIZE,
        """
        def f(x, y):
            return x + y

        c = compile(f)
        for n in (4, 5, 6):
            x, y = torch.ones(n, 2), torch.ones(n, 2)
            call(c, x, y)
        """,
        {"graphs": 2},
        fewer(
            MARK,
            ("    call(c, x, y)", f"    {MARK}\n    torch._dynamo.mark_dynamic(y, 0)\n    call(c, x, y)"),
            graphs=1,
        ),
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=1),
        says=("torch._dynamo.mark_dynamic(x, 0) and torch._dynamo.mark_dynamic(y, 0)",),
    ),
    row(
        "size of a tensor of an object",
        C.SIZE,
        """
        class State:
            def f(self, x):
                return x + self.b.sum()

        s = State()
        c = compile(s.f)
        for n in (4, 5, 6):
            s.b = torch.ones(n)
            call(c, torch.ones(3))
        """,
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(self.b, 0)",
            ("torch.ones(n)\n", "torch.ones(n)\n    torch._dynamo.mark_dynamic(s.b, 0)\n"),
            graphs=1,
        ),
        fewer("compile with dynamic=True", ("compile(s.f)", "compile(s.f, dynamic=True)"), graphs=1),
    ),
    row(
        "size of a tensor that is no buffer of its module",
        C.SIZE,
        """
        class Cached(torch.nn.Module):
            def forward(self, x):
                return x + self.cache.sum()

        m = Cached()
        c = compile(m)
        for n in (4, 5, 6):
            m.cache = torch.ones(n)
            call(c, torch.ones(3))
        """,
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(self.cache, 0)",
            ("torch.ones(n)\n", "torch.ones(n)\n    torch._dynamo.mark_dynamic(m.cache, 0)\n"),
            graphs=1,
        ),
    ),
    row(
        "size of a global tensor",
        C.SIZE,
        """
        T = torch.ones(4)

        def f(x):
            return x + T.sum()

        c = compile(f)
        for n in (4, 5, 6):
            T = torch.ones(n)
            call(c, torch.ones(3))
        """,
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(T, 0)",
            ("    T = torch.ones(n)\n", "    T = torch.ones(n)\n    torch._dynamo.mark_dynamic(T, 0)\n"),
            graphs=1,
        ),
    ),
    row(
        "size of a tensor in a list",
        C.SIZE,
        """
        def f(xs):
            return xs[0] + xs[1].sum()

        c = compile(f)
        for n in (4, 5, 6):
            xs = [torch.ones(3), torch.ones(n)]
            call(c, xs)
        """,
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(xs[1], 0)",
            ("    call(c, xs)", "    torch._dynamo.mark_dynamic(xs[1], 0)\n    call(c, xs)"),
            graphs=1,
        ),
    ),
    row(
        "size of a parameter that is an argument",
        C.PARAMETER_SIZE,
        """
        def f(p):
            return p * 2

        c = compile(f)
        for n in (8, 9, 10, 11):
            p = torch.nn.Parameter(torch.ones(n))
            call(c, p)
        """,
        {"graphs": 4},
        nothing(
            "static whatever is marked",
            ("    call(c, p)", "    torch._dynamo.maybe_mark_dynamic(p, 0)\n    call(c, p)"),
        ),
        fewer(STATIC_PARAMETERS, ("compile(f)", "compile(f, dynamic=True)"), settings=STATIC_PARAMETERS, graphs=1),
        nothing("and compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)")),
        fewer("without dynamic=True the second size is compiled", settings=STATIC_PARAMETERS, graphs=2),
        says=("p has size 9 in dimension 0, and was compiled for 8",),
        never=("size 9.", "mark_dynamic(p"),
    ),
    row(
        "size of a parameter of a module",
        C.PARAMETER_SIZE,
        """
        class Scale(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.p = torch.nn.Parameter(torch.ones(3))

            def forward(self, x):
                return x * self.p.sum()

        m = Scale()
        c = compile(m)
        for n in (3, 4, 5):
            m.p = torch.nn.Parameter(torch.ones(n))
            call(c, torch.ones(2))
        """,
        {"graphs": 3},
        fewer(STATIC_PARAMETERS, ("compile(m)", "compile(m, dynamic=True)"), settings=STATIC_PARAMETERS, graphs=1),
        fewer("without dynamic=True the second size is compiled", settings=STATIC_PARAMETERS, graphs=2),
    ),
    row(
        "size of a buffer",
        C.PARAMETER_SIZE,
        """
        class Cached(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("cache", torch.ones(4))

            def forward(self, x):
                return x + self.cache.sum()

        m = Cached()
        c = compile(m)
        for n in (4, 5, 6):
            m.cache = torch.ones(n)
            call(c, torch.ones(3))
        """,
        {"graphs": 3},
        fewer(STATIC_PARAMETERS, ("compile(m)", "compile(m, dynamic=True)"), settings=STATIC_PARAMETERS, graphs=1),
        fewer("without dynamic=True the second size is compiled", settings=STATIC_PARAMETERS, graphs=2),
        never=("mark_dynamic(self",),
    ),
    row(
        "sizes of parameters of a module of torch.nn",
        C.PARAMETER_SIZE,
        """
        m = torch.nn.Linear(4, 5)
        c = compile(m)
        for n in (5, 6, 7):
            m.weight = torch.nn.Parameter(torch.ones(n, 4))
            m.bias = torch.nn.Parameter(torch.ones(n))
            call(c, torch.ones(3, 4))
        """,
        {"graphs": 3},
        fewer(
            STATIC_PARAMETERS,
            ("compile(m)", "compile(m, dynamic=True)"),
            settings=f"{STATIC_PARAMETERS}\n{STATIC_MODULES}",
            graphs=1,
        ),
        nothing("(for modules of torch.nn", settings=STATIC_PARAMETERS),
        fewer(
            "force_nn_module_property_static_shapes = False, too",
            settings=f"{STATIC_PARAMETERS}\n{STATIC_MODULES}",
            graphs=2,
        ),
    ),
    row(
        "LoRA adapters of several ranks that are exchanged",
        C.PARAMETER_SIZE,
        """
        class LoRA(torch.nn.Module):
            def __init__(self, base, rank):
                super().__init__()
                self.base = base
                self.a = torch.nn.Parameter(torch.ones(rank, 4))
                self.b = torch.nn.Parameter(torch.ones(4, rank))

            def forward(self, x):
                return self.base(x) + x @ self.a.t() @ self.b.t()

        torch.manual_seed(0)
        base = torch.nn.Linear(4, 4)
        m = torch.nn.Sequential(LoRA(base, 2))
        c = compile(m)
        for rank in (2, 4, 8):
            m[0] = LoRA(base, rank)
            call(c, torch.ones(3, 4))
        """,
        {"graphs": 3},
        fewer(STATIC_PARAMETERS, ("compile(m)", "compile(m, dynamic=True)"), settings=STATIC_PARAMETERS, graphs=1),
        fewer("without dynamic=True the second size is compiled", settings=STATIC_PARAMETERS, graphs=2),
        says=("fn[0].a has size 4 in dimension 0", "fn[0].b has size 4 in dimension 1"),
    ),
    row(
        "size 1",
        "sizes 0 and 1",
        """
        def f(x):
            return x + 1

        c = compile(f, dynamic=True)
        for n in (4, 1):
            x = torch.ones(n)
            call(c, x)
        """,
        {"graphs": 2},
        expected(
            "expect one more compilation for each", "for n in (1, 5, 1, 7):\n    call(c, torch.ones(n))", graphs=2
        ),
        fewer(
            "pad to 2 or more",
            ("call(c, x)", "call(c, torch.nn.functional.pad(x, (0, max(0, 2 - n))))"),
            counts_only="results are padded",
            graphs=1,
        ),
    ),
    row(
        "size 0",
        "sizes 0 and 1",
        """
        def f(x):
            return x + 1

        c = compile(f)
        for n in (4, 0):
            call(c, torch.ones(n))
        """,
        {"graphs": 2},
        nothing("even in marked dimensions", ("compile(f)", "compile(f, dynamic=True)")),
        expected("expect one more compilation for each", "for n in (0, 4, 0):\n    call(c, torch.ones(n))", graphs=2),
    ),
    row(
        "loop over a size",
        C.CONSTANT_SIZE,
        """
        def f(x):
            for i in range(x.shape[0]):
                x = x + i
            return x

        c = compile(f)
        for n in (2, 3, 4):
            x = torch.ones(n)
            call(c, x)
        """,
        {"graphs": 3},
        nothing("dynamic=False", ("compile(f)", "compile(f, dynamic=True)")),
        nothing(
            "mark_dynamic would raise", ("    call(c, x)", "    torch._dynamo.maybe_mark_dynamic(x, 0)\n    call(c, x)")
        ),
        fewer(
            "pad to a few sizes",
            ("call(c, x)", "call(c, torch.nn.functional.pad(x, (0, 4 - n)))"),
            counts_only="results are padded",
            graphs=1,
        ),
    ),
    row(
        "size as a key",
        C.CONSTANT_SIZE,
        """
        FACTORS = {4: 1.0, 8: 2.0, 12: 3.0}

        def f(x):
            return x + FACTORS[x.shape[0]]

        c = compile(f)
        for n in (4, 8, 12):
            x = torch.ones(n)
            call(c, x)
        """,
        {"graphs": 3},
        nothing("a key", ("compile(f)", "compile(f, dynamic=True)")),
        nothing(
            "mark_dynamic would raise", ("    call(c, x)", "    torch._dynamo.maybe_mark_dynamic(x, 0)\n    call(c, x)")
        ),
    ),
    row(
        "sizes of two tensors that have to be equal",
        C.SIZE,
        """
        def f(x, y):
            return x + y

        c = compile(f)
        for n in (4, 5, 6):
            x, y = torch.ones(n), torch.ones(n)
            call(c, x, y)
        """,
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(x, 0) and torch._dynamo.mark_dynamic(y, 0)",
            (
                "    call(c, x, y)",
                "    torch._dynamo.mark_dynamic(x, 0); torch._dynamo.mark_dynamic(y, 0)\n    call(c, x, y)",
            ),
            graphs=1,
        ),
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=1),
    ),
    row(
        "sizes of three tensors, one in another dimension",
        C.SIZE,
        """
        def f(x, y, z):
            return x @ y + z

        c = compile(f)
        for n in (4, 5, 6):
            x, y, z = torch.ones(2, n), torch.ones(n, 2), torch.ones(2)
            call(c, x, y, z)
        """,
        {"graphs": 2},
        fewer(
            "torch._dynamo.mark_dynamic(x, 1) and torch._dynamo.mark_dynamic(y, 0)",
            (
                "    call(c, x, y, z)",
                "    torch._dynamo.mark_dynamic(x, 1); torch._dynamo.mark_dynamic(y, 0)\n    call(c, x, y, z)",
            ),
            graphs=1,
        ),
        never=("mark_dynamic(z",),
    ),
    row(
        "stride, and another entry of another dtype",
        [C.STRIDE, C.DTYPE],
        """
        def f(x):
            return x + 1

        c = compile(f)
        call(c, torch.ones(4, 4))
        call(c, torch.ones(4, 4, dtype=torch.float64))
        call(c, torch.ones(4, 4).t())
        """,
        {"graphs": 3},
        fewer("call x.contiguous() before", ("torch.ones(4, 4).t()", "torch.ones(4, 4).t().contiguous()"), graphs=2),
        says=("f was recompiled once (guard on stride of x",),
        never=(
            "x has dtype float32, and was compiled for float64; ",
            "has dtype float32, and was compiled for float64.",
        ),
    ),
    row(
        "size, and another entry of another dtype",
        [C.SIZE, C.DTYPE],
        """
        def f(x):
            return x + 1

        c = compile(f)
        call(c, torch.ones(4))
        call(c, torch.ones(4, dtype=torch.float64))
        call(c, torch.ones(5))
        """,
        {"graphs": 3},
        fewer("compile with dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=2),
        says=("f was recompiled once (guard on size of x",),
        never=("has dtype float32, and was compiled for float64.",),
    ),
    row(
        "dynamic=False",
        C.STATIC_SIZE,
        """
        def f(x):
            return x + 1

        c = compile(f, dynamic=False)
        for n in (4, 8, 12):
            call(c, torch.ones(n))
        """,
        {"graphs": 3},
        fewer("compile with dynamic=True, as dynamic shapes are off", ("dynamic=False", "dynamic=True"), graphs=1),
        never=("torch._dynamo.mark_dynamic(x, 0)",),
    ),
    row(
        "dynamic=False and one recompilation",
        C.STATIC_SIZE,
        """
        def f(x):
            return x + 1

        c = compile(f, dynamic=False)
        for n in (4, 8):
            call(c, torch.ones(n))
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True, as dynamic shapes are off", ("dynamic=False", "dynamic=True"), graphs=1),
    ),
    row(
        "dynamic=False and a size that is a constant",
        C.STATIC_SIZE,
        """
        def f(x):
            for i in range(x.shape[0]):
                x = x + i
            return x

        c = compile(f, dynamic=False)
        for n in (4, 8):
            call(c, torch.ones(n))
        """,
        {"graphs": 2},
        nothing("nothing where the code makes a constant of the size", ("dynamic=False", "dynamic=True")),
    ),
    row(
        "dynamic=True and a size that is a constant",
        C.CONSTANT_SIZE,
        """
        def f(x):
            for i in range(x.shape[0]):
                x = x + i
            return x

        c = compile(f, dynamic=True)
        for n in (4, 8):
            call(c, torch.ones(n))
        """,
        {"graphs": 2},
        nothing(
            "mark_dynamic would raise",
            ("call(c, torch.ones(n))", "x = torch.ones(n); torch._dynamo.maybe_mark_dynamic(x, 0); call(c, x)"),
        ),
        never=("compile with dynamic=True",),
    ),
    row(
        "a size that is a constant and one recompilation",
        C.CONSTANT_SIZE,
        """
        def f(x):
            for i in range(x.shape[0]):
                x = x + i
            return x

        c = compile(f)
        for n in (4, 8):
            call(c, torch.ones(n))
        """,
        {"graphs": 2},
        nothing("pad to a few sizes", ("compile(f)", "compile(f, dynamic=True)")),
        own_why="there is one entry when the question is asked",
    ),
    row(
        "automatic dynamic shapes are off",
        C.STATIC_SIZE,
        """
        torch._dynamo.config.automatic_dynamic_shapes = False

        def f(x):
            return x + 1

        c = compile(f)
        for n in (4, 8, 12):
            call(c, torch.ones(n))
        """,
        {"graphs": 3},
        fewer(
            "compile with dynamic=True, as dynamic shapes are off", ("compile(f)", "compile(f, dynamic=True)"), graphs=1
        ),
        fewer(
            "torch._dynamo.config.automatic_dynamic_shapes = False",
            ("torch._dynamo.config.automatic_dynamic_shapes = False\n", ""),
            graphs=2,
        ),
    ),
    row(
        "size that is marked static",
        C.MARKED_SIZE,
        """
        def f(x):
            return x + 1

        c = compile(f)
        for n in (3, 4, 5):
            x = torch.ones(n)
            torch._dynamo.mark_static(x, 0)
            call(c, x)
        """,
        {"graphs": 3},
        nothing("(torch._dynamo.mark_static)", ("compile(f)", "compile(f, dynamic=True)")),
        fewer("remove the mark", ("    torch._dynamo.mark_static(x, 0)\n", ""), graphs=2),
    ),
    row(
        "size that is marked static and is a constant",
        C.MARKED_SIZE,
        """
        def f(x):
            for i in range(x.shape[0]):
                x = x + i
            return x

        c = compile(f)
        for n in (3, 4, 5):
            x = torch.ones(n)
            torch._dynamo.mark_static(x, 0)
            call(c, x)
        """,
        {"graphs": 3},
        nothing(
            "which changes nothing where the code makes a constant of the size",
            ("    torch._dynamo.mark_static(x, 0)\n", ""),
        ),
    ),
    row(
        "branch on a size",
        C.SIZES,
        """
        def f(x):
            return x + 1 if x.shape[0] > 3 else x - 1

        c = compile(f)
        for n in (4, 5, 3, 2):
            x = torch.ones(n)
            call(c, x)
        """,
        {"graphs": 3},
        expected("each side needs a compilation", "for n in (7, 2, 9, 3):\n    call(c, torch.ones(n))", graphs=3),
        fewer("so that no other compilation is made", ("    call(c, x)", f"    {MARK}\n    call(c, x)"), graphs=2),
    ),
    row(
        "sizes that were equal by chance",
        C.EQUAL_SIZES,
        """
        def f(x, y):
            return x.sum() + y.sum()

        c = compile(f, dynamic=True)
        for n, m in ((4, 4), (5, 6), (7, 8)):
            call(c, torch.ones(n), torch.ones(m))
        """,
        {"graphs": 2},
        fewer("use_duck_shape = False", settings="torch.fx.experimental._config.use_duck_shape = False", graphs=1),
        fewer(
            "make the first call with sizes that differ",
            ("(4, 4), (5, 6), (7, 8)", "(5, 6), (4, 4), (7, 8)"),
            counts_only="the calls are in another order",
            graphs=1,
        ),
        never=("the code branches",),
    ),
    row(
        "relation of two sizes",
        C.SIZES,
        """
        def f(x, y):
            return x.sum() + 1 if x.shape[0] == y.shape[0] else y.sum()

        c = compile(f, dynamic=True)
        for n, m in ((4, 4), (5, 5), (4, 6), (7, 8)):
            call(c, torch.ones(n), torch.ones(m))
        """,
        {"graphs": 2},
        expected(
            "each side needs a compilation", "for n in (3, 4, 6):\n    call(c, torch.ones(n), torch.ones(4))", graphs=2
        ),
        says=("y.size()[0] is 6, x.size()[0] is 4",),
    ),
    row(
        "size that is divided",
        C.SIZES,
        """
        def f(x):
            return x.reshape(4, -1) + int(x.shape[0] // 4 > 1)

        c = compile(f, dynamic=True)
        for n in (4, 8, 12):
            call(c, torch.ones(n))
        """,
        {"graphs": 2},
        expected("each side needs a compilation", "for n in (16, 4, 20):\n    call(c, torch.ones(n))", graphs=2),
    ),
]

LAYOUTS = [
    row(
        "transposed tensor",
        C.STRIDE,
        """
        def f(x):
            return x + 1

        c = compile(f)
        a = torch.arange(12.0).reshape(3, 4)
        for x in (a, a.t().contiguous().t()):
            call(c, x)
        """,
        {"graphs": 2},
        fewer("call x.contiguous() before", ("call(c, x)", "call(c, x.contiguous())"), graphs=1),
    ),
    row(
        "channels last",
        C.STRIDE,
        """
        def f(x):
            return x + 1

        c = compile(f)
        a = torch.ones(2, 3, 4, 4)
        for x in (a, a.to(memory_format=torch.channels_last)):
            call(c, x)
        """,
        {"graphs": 2},
        fewer("call x.contiguous() before", ("call(c, x)", "call(c, x.contiguous())"), graphs=1),
    ),
    row(
        "slices of several widths",
        C.STRIDE,
        """
        def f(x):
            return x + 1

        c = compile(f)
        for n in (8, 6, 4):
            x = torch.arange(3.0 * n).reshape(3, n)[:, :3]
            call(c, x)
        """,
        {"graphs": 2},
        fewer("call x.contiguous() before", ("call(c, x)", "call(c, x.contiguous())"), graphs=1),
    ),
    row(
        "expanded tensor",
        C.STRIDE,
        """
        def f(x):
            return x * 2

        c = compile(f)
        for x in (torch.ones(3, 4), torch.ones(4).expand(3, 4)):
            call(c, x)
        """,
        {"graphs": 2},
        fewer("call x.contiguous() before", ("call(c, x)", "call(c, x.contiguous())"), graphs=1),
    ),
    row(
        "number of dimensions",
        C.RANK,
        """
        def f(x):
            return x.sum()

        c = compile(f)
        for x in (torch.ones(4), torch.ones(2, 2)):
            call(c, x)
        """,
        {"graphs": 2},
        expected(
            "each number of dimensions needs a compilation",
            "call(c, torch.ones(2, 2))\ncall(c, torch.ones(4))",
            graphs=2,
        ),
        fewer("reshape before the call", ("call(c, x)", "call(c, x.reshape(4))"), graphs=1),
    ),
    row(
        "dtype of an argument",
        C.DTYPE,
        """
        def f(x):
            return (x + 1).float()

        c = compile(f)
        for dtype in (torch.float32, torch.float64):
            x = torch.ones(4, dtype=dtype)
            call(c, x)
        """,
        {"graphs": 2},
        expected("each dtype needs a compilation of its own", "call(c, torch.ones(4, dtype=torch.float64))", graphs=2),
        fewer("convert before the call", ("call(c, x)", "call(c, x.float())"), graphs=1),
    ),
    row(
        "dtype of a parameter",
        (C.DTYPE, O.ATTRIBUTE),
        """
        m = torch.nn.Embedding(2, 2)
        c = compile(m)
        for dtype in (torch.float32, torch.float64):
            m.to(dtype)
            call(c, torch.tensor([1]))
        """,
        {"graphs": 2},
        expected("each dtype needs a compilation of its own", "call(c, torch.tensor([0]))", graphs=2),
        fewer(
            "convert it once, before the first call",
            ("for dtype in (torch.float32, torch.float64)", "for dtype in (torch.float64, torch.float64)"),
            counts_only="results are of another dtype",
            graphs=1,
        ),
    ),
    row(
        "requires_grad of an argument",
        C.REQUIRES_GRAD,
        """
        def f(x):
            return x * 2

        c = compile(f)
        for needed in (False, True):
            x = torch.ones(3, requires_grad=needed)
            call(c, x)
        """,
        {"graphs": 2},
        expected(
            "expect two compilations", "for n in (False, True):\n    call(c, torch.ones(3, requires_grad=n))", graphs=2
        ),
        fewer("let it always require grad", ("requires_grad=needed", "requires_grad=True"), graphs=1),
        fewer("detach it", ("call(c, x)", "call(c, x.detach())"), graphs=1),
    ),
    row(
        "frozen parameter",
        (C.REQUIRES_GRAD, O.ATTRIBUTE),
        """
        m = torch.nn.Linear(2, 2)
        c = compile(m)
        for needed in (True, False):
            m.weight.requires_grad_(needed)
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        fewer(
            "freeze or unfreeze it before the first call", ("requires_grad_(needed)", "requires_grad_(False)"), graphs=1
        ),
        expected("each state needs a compilation", "m.weight.requires_grad_(True)\ncall(c, torch.ones(2))", graphs=2),
    ),
    row(
        "conjugate view",
        C.TENSOR_KIND,
        """
        def f(x):
            return x * 2

        c = compile(f)
        a = torch.ones(3, dtype=torch.complex64)
        for x in (a, a.conj()):
            call(c, x)
        """,
        {"graphs": 2},
        fewer("resolve_conj()", ("call(c, x)", "call(c, x.resolve_conj())"), graphs=1),
    ),
    row(
        "negative view",
        C.TENSOR_KIND,
        """
        def f(x):
            return x * 2

        c = compile(f)
        a = torch.full((3,), 1 + 2j)
        for x in (a.imag.clone(memory_format=torch.preserve_format), a.conj().imag):
            call(c, x.as_strided((3,), (2,)) if x.is_neg() else torch.stack([x, x], 1)[:, 0])
        """,
        {"graphs": 2},
        fewer("resolve_neg()", (".as_strided((3,), (2,)) if", ".resolve_neg().repeat_interleave(2)[::2] if"), graphs=1),
    ),
    row(
        "meta device",
        C.TENSOR_KIND,
        """
        def f(x):
            return x * 2

        c = compile(f)
        for device in ("cpu", "meta"):
            c(torch.ones(3, device=device)) if device == "cpu" else out(call(c, torch.ones(3, device=device)).shape)
        """,
        {"graphs": 2},
        expected("each device, layout and lazy view needs a compilation", "c(torch.ones(3, device='meta'))", graphs=2),
        fewer(
            "pass tensors of the same device",
            ('if device == "cpu" else out', 'if device == "cpu" else len'),
            ("(c, torch.ones(3, device=device))", "(c, torch.ones(3))"),
            counts_only="another device",
            graphs=1,
        ),
    ),
]

RELATIONS = [
    row(
        "one tensor for two arguments",
        C.SAME_TENSOR,
        """
        def f(x, y):
            return x + y

        c = compile(f)
        a = torch.ones(3)
        for x, y in ((torch.ones(3), torch.ones(3)), (a, a)):
            call(c, x, y)
        """,
        {"graphs": 2},
        fewer("pass a clone", ("call(c, x, y)", "call(c, x, y.clone())"), graphs=1),
        fewer("always pass the same tensor twice", ("call(c, x, y)", "call(c, x, x)"), graphs=1),
    ),
    row(
        "two tensors where one was before",
        C.SAME_OBJECT,
        """
        def f(x, y):
            return x + y

        c = compile(f)
        a = torch.ones(3)
        for x, y in ((a, a), (torch.ones(3), torch.ones(3))):
            call(c, x, y)
        """,
        {"graphs": 2},
        fewer("pass the same object twice each time", ("call(c, x, y)", "call(c, x, x)"), graphs=1),
        fewer("or never", ("call(c, x, y)", "call(c, x, y.clone())"), graphs=1),
    ),
    row(
        "two lists where one was before",
        C.SAME_OBJECT,
        """
        def f(x, a, b):
            return x + a[0] + b[0]

        c = compile(f)
        p = [torch.ones(2)]
        for a, b in ((p, p), ([torch.ones(2)], [torch.ones(2)])):
            call(c, torch.ones(2), a, b)
        """,
        {"graphs": 2},
        fewer("pass the same object twice each time", ("torch.ones(2), a, b)", "torch.ones(2), a, a)"), graphs=1),
    ),
    row(
        "views that overlap",
        C.OVERLAP,
        """
        base = torch.ones(20)

        def f(x, y):
            x.add_(1)
            return x + y

        c = torch.compile(f, backend="aot_eager", dynamic=True)
        for start in (3, 8, 3):
            call(c, base[:6], base[start : start + 6])
        """,
        {"compilations": 2},
        fewer(
            "overlap in memory in the same way each time",
            ("(3, 8, 3)", "(8, 9, 10)"),
            counts_only="other views",
            compilations=1,
        ),
        fewer(
            "or clones of them",
            ("base[start : start + 6])", "base[start : start + 6].clone())"),
            compilations=1,
            counts_only="a view is not written",
        ),
    ),
    row(
        "marks on some tensors",
        C.MARKS,
        """
        def f(x):
            return x + 1

        c = compile(f)
        for number in range(2):
            x = torch.ones(4)
            if number:
                torch._dynamo.mark_dynamic(x, 0)
            call(c, x)
        """,
        {"graphs": 2},
        fewer("mark the same dimensions on each tensor", ("if number:", "if True:"), graphs=1),
    ),
    row(
        "marks on other dimensions",
        C.MARKS,
        """
        def f(x):
            return x + 1

        c = compile(f)
        for number in range(2):
            x = torch.ones(4, 5)
            torch._dynamo.mark_dynamic(x, number)
            call(c, x)
        """,
        {"graphs": 2},
        fewer("mark the same dimensions on each tensor", ("mark_dynamic(x, number)", "mark_dynamic(x, 0)"), graphs=1),
    ),
    row(
        "weak marks on some tensors",
        C.MARKS,
        """
        def f(x):
            return x + 1

        c = compile(f)
        for number in range(2):
            x = torch.ones(4)
            if number:
                torch._dynamo.maybe_mark_dynamic(x, 0)
            call(c, x)
        """,
        {"graphs": 2},
        fewer("mark the same dimensions on each tensor", ("if number:", "if True:"), graphs=1),
    ),
]

ROWS = [*SIZES, *LAYOUTS, *RELATIONS]
