"""Rows for recompilations with several causes at once, and for functions that are recompiled for different causes."""

from __future__ import annotations

from harness import fewer, nothing, row

from depyf.diagnosis.guard_advice import GuardCause as C

UNSPECIALIZED = "torch._dynamo.config.allow_unspec_int_on_nn_module = True"
STATIC_PARAMETERS = "torch._dynamo.config.force_parameter_static_shapes = False"
MORE = "more has changed since that entry was compiled: "

AT_ONCE = [
    row(
        "dtype, size and a flag that change in one call",
        [C.DTYPE, C.SIZE, C.CHOICE],
        """
        def f(x, kind):
            return x * 2 if kind == "a" else x + 1

        c = compile(f)
        for x, kind in ((torch.ones(3), "a"), (torch.ones(4).double(), "b")):
            call(c, x, kind)
        """,
        {"graphs": 2},
        fewer(
            "if one is enough, convert before the call",
            (
                "    call(c, x, kind)",
                "    x = x.float()\n    torch._dynamo.mark_dynamic(x, 0)\n    call(c, x, 'a' and 'a')",
            ),
            counts_only="another dtype and flag",
            graphs=1,
        ),
        nothing("if one is enough, convert before the call", ("call(c, x, kind)", "call(c, x.float(), kind)")),
        nothing(
            "if one is enough, convert before the call",
            ("    call(c, x, kind)", "    x = x.float()\n    torch._dynamo.mark_dynamic(x, 0)\n    call(c, x, kind)"),
        ),
        says=(
            f"{MORE}size of x in dimension 0 (mark what varies before the first call, torch._dynamo.mark_dynamic(x, 0)",
            "kind (each value needs",
            "x has size 4 in dimension 0, and was compiled for 3",
        ),
    ),
    row(
        "rank and alpha of a LoRA adapter",
        [C.MODULE_NUMBER, C.PARAMETER_SIZE],
        """
        class LoRA(torch.nn.Module):
            def __init__(self, base, rank, alpha):
                super().__init__()
                self.base, self.rank, self.alpha = base, rank, alpha
                self.a = torch.nn.Parameter(torch.ones(rank, 4))
                self.b = torch.nn.Parameter(torch.ones(4, rank))

            def forward(self, x):
                return self.base(x) + (x @ self.a.t() @ self.b.t()) * (self.alpha / self.rank)

        torch.manual_seed(0)
        base = torch.nn.Linear(4, 4)
        m = torch.nn.ModuleDict({"q": base})

        def f(x):
            return m["q"](x)

        c = compile(f)
        call(c, torch.ones(3, 4))
        for rank, alpha in ((2, 4), (4, 16), (8, 64)):
            m["q"] = LoRA(base, rank, alpha)
            call(c, torch.ones(3, 4))
        """,
        {"graphs": 4},
        fewer(
            "convert it into a tensor",
            ("base, rank, alpha\n", "base, torch.tensor(rank), torch.tensor(alpha)\n"),
            ("compile(f)", "compile(f, dynamic=True)"),
            settings=STATIC_PARAMETERS,
            graphs=2,
        ),
        nothing("allow_unspec_int_on_nn_module = True", settings=UNSPECIALIZED),
        says=("m.q.alpha", "size of m.q.a in dimension 0"),
    ),
    row(
        "int of a module that the code needs, where ints of modules are no constants",
        C.CONSTANT_NUMBER,
        f"""
        {UNSPECIALIZED}

        class Repeat(torch.nn.Module):
            def forward(self, x):
                for i in range(self.times):
                    x = x + i
                return x

        m = Repeat()
        c = compile(m, dynamic=True)
        for m.times in (2, 3, 4):
            call(c, torch.ones(3))
        """,
        {"graphs": 3},
        nothing("dynamic=True does not change it", ("compile(m, dynamic=True)", "compile(m)")),
        never=("allow_unspec_int_on_nn_module",),
    ),
    row(
        "adapters under other names",
        C.MEMBERS,
        """
        class LoRA(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.down, self.up = torch.nn.ModuleDict(), torch.nn.ModuleDict()
                self.scaling, self.active = {}, []

            def load(self, name):
                for each in self.active:
                    del self.down[each], self.up[each], self.scaling[each]
                self.down[name] = torch.nn.Linear(4, 2)
                self.up[name] = torch.nn.Linear(2, 4)
                self.scaling[name] = 0.5
                self.active = [name]

            def forward(self, x):
                for name in self.active:
                    x = x + self.up[name](self.down[name](x)) * self.scaling[name]
                return x

        torch.manual_seed(0)
        m = LoRA()
        c = compile(m)
        for name in ("style", "tone", "code"):
            m.load(name)
            call(c, torch.ones(3, 4))
        """,
        {"graphs": 3},
        fewer("keep the same keys each time", ("m.load(name)", "m.load('default')"), graphs=1),
        says=("self.down.style is missing, and was there when this was compiled",),
        never=("torch.nn.modules.linear.Linear, which it was compiled for", "keys and attributes"),
    ),
]

ONE_AFTER_THE_OTHER = [
    row(
        "strides of two tensors, one after the other",
        C.STRIDE,
        """
        def f(x, y):
            return x + y

        c = compile(f)
        x = torch.arange(12.0).reshape(3, 4)
        for x, y in ((x, x + 1), (x.t().contiguous().t(), x + 1), (x, (x + 1).t().contiguous().t())):
            call(c, x, y)
        """,
        {"graphs": 3},
        fewer("call x.contiguous() before", ("call(c, x, y)", "call(c, x.contiguous(), y.contiguous())"), graphs=1),
        nothing("call y.contiguous() before"),
        says=("Call y.contiguous() before",),
    ),
    row(
        "sizes of two tensors, one after the other",
        C.SIZE,
        """
        def f(x, y):
            return x.sum() + y.sum()

        c = compile(f)
        for n, m in ((3, 7), (4, 7), (4, 9)):
            x, y = torch.ones(n), torch.ones(m)
            call(c, x, y)
        """,
        {"graphs": 3},
        fewer(
            "torch._dynamo.mark_dynamic(x, 0), which",
            (
                "    call(c, x, y)",
                "    torch._dynamo.mark_dynamic(x, 0)\n    torch._dynamo.mark_dynamic(y, 0)\n    call(c, x, y)",
            ),
            graphs=1,
        ),
        nothing("torch._dynamo.mark_dynamic(y, 0), which"),
    ),
]

WHAT_CHANGED = [
    row(
        "items of a frozenset",
        C.ITEMS,
        """
        def f(x, names):
            return x + 1 if "a" in names else x - 1

        c = compile(f)
        for names in (frozenset("ab"), frozenset("b")):
            call(c, torch.ones(2), names)
        """,
        {"graphs": 2},
        fewer(
            "pass the same items each time",
            ('frozenset("b"))', 'frozenset("ab"))'),
            counts_only="another item",
            graphs=1,
        ),
        says=("(guard on items of names)",),
        never=("keys", "attributes"),
    ),
    row(
        "an int in place of a member of an enum",
        C.CLASS,
        """
        import enum

        class Mode(enum.IntEnum):
            ADD = 0
            SUB = 1

        def f(x, mode):
            return x + 1 if mode == Mode.ADD else x - 1

        c = compile(f)
        for mode in (Mode.SUB, 1):
            call(c, torch.ones(2), mode)
        """,
        {"graphs": 2},
        fewer("pass the same class each time", ("torch.ones(2), mode)", "torch.ones(2), Mode(mode))"), graphs=1),
        says=("mode is of class int, and was compiled for an object of class advised.Mode",),
        never=("another object", "identity"),
    ),
    row(
        "a member of an enum in place of an int",
        C.CLASS,
        """
        import enum

        class Mode(enum.IntEnum):
            ADD = 2
            SUB = 3

        def f(x, mode):
            return x + 1 if mode == 2 else x - 1

        c = compile(f)
        for mode in (3, Mode.SUB):
            call(c, torch.ones(2), mode)
        """,
        {"graphs": 2},
        fewer("pass the same class each time", ("torch.ones(2), mode)", "torch.ones(2), int(mode))"), graphs=1),
        says=("mode is of class Mode, and was compiled for an object of class int",),
        never=("dynamic=True",),
    ),
    row(
        "None in place of a member of an enum",
        C.NONE,
        """
        import enum

        class Mode(enum.Enum):
            ADD = 0
            SUB = 1

        def f(x, mode):
            return x + 1 if mode is Mode.ADD else x - 1

        c = compile(f)
        for mode in (Mode.SUB, None):
            call(c, torch.ones(2), mode)
        """,
        {"graphs": 2},
        fewer(
            "calls with it and without it need a compilation each",
            ("torch.ones(2), mode)", "torch.ones(2), mode or Mode.SUB)"),
            graphs=1,
        ),
        says=("mode is None, and was compiled for an object of class advised.Mode",),
    ),
    row(
        "an attribute that is gone",
        C.ATTRIBUTES,
        """
        class Settings:
            pass

        def f(x, s):
            return x + s.scale if hasattr(s, "scale") else x * 2

        s = Settings()
        s.scale = 0
        c = compile(f)
        call(c, torch.zeros(2), s)
        del s.scale
        call(c, torch.zeros(2), s)
        """,
        {"graphs": 2},
        fewer("keep the same attributes", ("del s.scale\n", ""), graphs=1),
        says=("s.scale is missing, and was there when this was compiled",),
        never=("s is missing",),
    ),
]

ROWS = [*AT_ONCE, *ONE_AFTER_THE_OTHER, *WHAT_CHANGED]
