"""Rows for guards on numbers, strings, flags, None and containers."""

from __future__ import annotations

from harness import expected, fewer, nothing, row

from depyf.diagnosis.guard_advice import GuardCause as C
from depyf.diagnosis.guard_advice import ValueOrigin as O

DYNAMIC = ("compile(f)", "compile(f, dynamic=True)")
UNSPECIALIZED = "torch._dynamo.config.allow_unspec_int_on_nn_module = True"

NUMBERS = [
    row(
        "int argument",
        C.NUMBER,
        """
        def f(x, n):
            return x * n

        c = compile(f)
        for n in (3, 4, 5):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True", DYNAMIC, graphs=1),
        fewer("pass it as a tensor", ("torch.ones(3), n)", "torch.ones(3), torch.tensor(n))"), graphs=1),
        says=("n is 4, and was compiled for 3",),
    ),
    row(
        "int argument that is a size",
        C.NUMBER,
        """
        def f(x, n):
            return x + torch.ones(n)

        c = compile(f)
        for n in (3, 4, 5):
            call(c, torch.ones(1), n)
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True", DYNAMIC, graphs=1),
    ),
    row(
        "int that is related to a size",
        C.NUMBER,
        """
        def f(x, n):
            return x.view(x.shape[0] // n, n).sum(1)

        c = compile(f)
        for b, n in ((12, 3), (16, 4), (30, 5)):
            call(c, torch.ones(b), n)
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True", DYNAMIC, graphs=1),
        never=("one each",),
    ),
    row(
        "ints in a list",
        C.NUMBER,
        """
        def f(x, a):
            return x * a[0] + a[1]

        c = compile(f)
        for a in ([2, 3], [4, 5], [6, 7]):
            call(c, torch.ones(3), a)
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True", DYNAMIC, graphs=1),
        says=("a[0] is 4, and was compiled for 2", "a[1] is 5, and was compiled for 3"),
    ),
    row(
        "int 0 and 1",
        C.NUMBER,
        """
        def f(x, n):
            return x * n

        c = compile(f)
        for n in (3, 1, 0, 5):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True", DYNAMIC, graphs=1),
    ),
    row(
        "int that a loop uses",
        C.CONSTANT_NUMBER,
        """
        def f(x, n):
            for i in range(n):
                x = x + i
            return x

        c = compile(f)
        for n in (3, 4, 5):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 3},
        expected("each value needs a compilation", "for n in (5, 4, 3):\n    call(c, torch.ones(3), n)", graphs=3),
        nothing("dynamic=True does not change it", DYNAMIC),
    ),
    row(
        "int that a loop uses and one recompilation",
        C.CONSTANT_NUMBER,
        """
        def f(x, n):
            for i in range(n):
                x = x + i
            return x

        c = compile(f)
        for n in (3, 4):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 2},
        nothing("dynamic=True does not change it", DYNAMIC),
        own_why="there is one entry when the question is asked",
    ),
    row(
        "int that a loop uses with dynamic=True",
        C.CONSTANT_NUMBER,
        """
        def f(x, n):
            for i in range(n):
                x = x + i
            return x

        c = compile(f, dynamic=True)
        for n in (3, 4):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 2},
        nothing("dynamic=True does not change it", ("dynamic=True", "dynamic=None")),
        never=("compile with dynamic=True",),
    ),
    row(
        "int with dynamic=False",
        C.STATIC_NUMBER,
        """
        def f(x, n):
            return x * n

        c = compile(f, dynamic=False)
        for n in (3, 4, 5):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 3},
        fewer("compile with dynamic=True, as dynamic shapes are off", ("dynamic=False", "dynamic=True"), graphs=1),
        fewer("pass it as a tensor", ("torch.ones(3), n)", "torch.ones(3), torch.tensor(n))"), graphs=1),
        never=("dynamic=True does not change it",),
    ),
    row(
        "float with dynamic=False",
        C.STATIC_NUMBER,
        """
        def f(x, n):
            return x * n

        c = compile(f, dynamic=False)
        for n in (3.5, 4.5, 5.5):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 3},
        fewer("compile with dynamic=True, as dynamic shapes are off", ("dynamic=False", "dynamic=True"), graphs=1),
        fewer("pass it as a tensor", ("torch.ones(3), n)", "torch.ones(3), torch.tensor(n))"), graphs=1),
    ),
    row(
        "int that a loop uses with dynamic=False",
        C.STATIC_NUMBER,
        """
        def f(x, n):
            for i in range(n):
                x = x + i
            return x

        c = compile(f, dynamic=False)
        for n in (3, 4, 5):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 3},
        nothing(
            "neither helps where the code needs a Python number (a loop over range", ("dynamic=False", "dynamic=True")
        ),
    ),
    row(
        "specialized ints",
        C.CONSTANT_NUMBER,
        """
        torch._dynamo.config.specialize_int = True

        def f(x, n):
            return x * n

        c = compile(f)
        for n in (3, 4, 5):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 3},
        fewer("torch._dynamo.config.specialize_int", ("torch._dynamo.config.specialize_int = True\n", ""), graphs=2),
    ),
    row(
        "specialized floats",
        C.CONSTANT_NUMBER,
        """
        torch._dynamo.config.specialize_float = True

        def f(x, a):
            return x * a

        c = compile(f)
        for a in (3.5, 4.5, 5.5):
            call(c, torch.ones(3), a)
        """,
        {"graphs": 3},
        fewer("of floats specialize_float", ("torch._dynamo.config.specialize_float = True\n", ""), graphs=2),
        nothing("dynamic=True does not change it", DYNAMIC),
    ),
    row(
        "branch on an int",
        C.BRANCH,
        """
        def f(x, n):
            return x + 1 if n > 3 else x - 1

        c = compile(f)
        for n in (4, 5, 3, 2):
            call(c, torch.ones(3), n)
        """,
        {"graphs": 3},
        expected("each side needs a compilation", "for n in (7, 2):\n    call(c, torch.ones(3), n)", graphs=3),
        fewer(
            "choose with torch.where",
            ("x + 1 if n > 3 else x - 1", "torch.where(n > 3, x + 1, x - 1)"),
            ("torch.ones(3), n)", "torch.ones(3), torch.tensor(n))"),
            graphs=1,
        ),
        never=("a size",),
    ),
    row(
        "branch on a float",
        C.BRANCH,
        """
        def f(x, a):
            return x + 1 if a > 2.0 else x - 1

        c = compile(f)
        for a in (3.0, 4.0, 1.0, 0.5):
            call(c, torch.ones(2), a)
        """,
        {"graphs": 3},
        expected("each side needs a compilation", "for a in (7.0, 0.25):\n    call(c, torch.ones(2), a)", graphs=3),
        fewer(
            "choose with torch.where",
            ("x + 1 if a > 2.0 else x - 1", "torch.where(a > 2.0, x + 1, x - 1)"),
            ("torch.ones(2), a)", "torch.ones(2), torch.tensor(a))"),
            graphs=1,
        ),
        says=("it was compiled for a > 2.0; now: a is 1.0",),
        never=("a size", "mark_dynamic"),
    ),
    row(
        "float argument",
        C.FLOAT,
        """
        def f(x, a):
            return x * a

        c = compile(f)
        for a in (3.5, 4.5, 5.5):
            call(c, torch.ones(3), a)
        """,
        {"graphs": 2},
        fewer("pass it as a tensor", ("torch.ones(3), a)", "torch.ones(3), torch.tensor(a))"), graphs=1),
        fewer("compile with dynamic=True", DYNAMIC, graphs=1),
    ),
    row(
        "nan",
        C.FLOAT,
        """
        def f(x, a):
            return x * a

        c = compile(f)
        for a in (3.5, float("nan"), 4.5):
            call(c, torch.ones(3), a)
        """,
        {"graphs": 3},
        fewer("pass it as a tensor", ("torch.ones(3), a)", "torch.ones(3), torch.tensor(a))"), graphs=1),
        fewer("compile with dynamic=True", DYNAMIC, graphs=2),
        says=("a is nan, and was compiled for 3.5",),
    ),
    row(
        "complex argument",
        C.COMPLEX,
        """
        def f(x, a):
            return x * a

        c = compile(f)
        for a in (1 + 2j, 2 + 3j, 3 + 4j):
            call(c, torch.ones(3), a)
        """,
        {"graphs": 3},
        expected("each complex number needs a compilation", "call(c, torch.ones(3), 2 + 3j)", graphs=3),
        fewer("pass it as a tensor", ("torch.ones(3), a)", "torch.ones(3), torch.tensor(a))"), graphs=1),
    ),
    row(
        "int of an object",
        (C.NUMBER, O.ATTRIBUTE),
        """
        class Scale:
            def f(self, x):
                return x * self.n

        s = Scale()
        c = compile(s.f)
        for n in (3, 4, 5):
            s.n = n
            call(c, torch.ones(3))
        """,
        {"graphs": 2},
        fewer(
            "set it once, before the first call",
            ("    s.n = n\n", "    s.n = 3\n"),
            counts_only="another value",
            graphs=1,
        ),
        fewer("compile with dynamic=True", ("compile(s.f)", "compile(s.f, dynamic=True)"), graphs=1),
        fewer("make it a tensor", ("    s.n = n\n", "    s.n = torch.tensor(n)\n"), graphs=1),
    ),
    row(
        "int of a module",
        C.MODULE_NUMBER,
        """
        class Scale(torch.nn.Module):
            def forward(self, x):
                return x * self.n

        m = Scale()
        c = compile(m)
        for n in (3, 4, 5):
            m.n = n
            call(c, torch.ones(3))
        """,
        {"graphs": 3},
        nothing("as constants", ("compile(m)", "compile(m, dynamic=True)")),
        fewer("convert it into a tensor", ("    m.n = n\n", "    m.n = torch.tensor(n)\n"), graphs=1),
        fewer(UNSPECIALIZED, settings=UNSPECIALIZED, graphs=2),
    ),
    row(
        "int of a module that is an index",
        C.MODULE_NUMBER,
        """
        class Chosen(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scales = [1.0, 2.0, 3.0]

            def forward(self, x):
                return x * self.scales[self.n]

        m = Chosen()
        c = compile(m)
        for n in (0, 1, 2):
            m.n = n
            call(c, torch.ones(3))
        """,
        {"graphs": 3},
        nothing("neither helps where the code needs a Python number", settings=UNSPECIALIZED),
    ),
    row(
        "float of a module",
        (C.FLOAT, O.ATTRIBUTE),
        """
        class Scale(torch.nn.Module):
            def forward(self, x):
                return x * self.a

        m = Scale()
        c = compile(m)
        for a in (3.5, 4.5, 5.5):
            m.a = a
            call(c, torch.ones(3))
        """,
        {"graphs": 2},
        fewer(
            "set it once, before the first call",
            ("    m.a = a\n", "    m.a = 3.5\n"),
            counts_only="another value",
            graphs=1,
        ),
        fewer("make it a tensor", ("    m.a = a\n", "    m.a = torch.tensor(a)\n"), graphs=1),
        fewer("compile with dynamic=True", ("compile(m)", "compile(m, dynamic=True)"), graphs=1),
    ),
    row(
        "global int",
        (C.NUMBER, O.GLOBAL),
        """
        N = 3

        def f(x):
            return x * N

        c = compile(f)
        for n in (3, 4, 5):
            N = n
            call(c, torch.ones(3))
        """,
        {"graphs": 3},
        fewer("set it once, before the first call", ("    N = n\n", ""), counts_only="another value", graphs=1),
        fewer("make it a tensor", ("    N = n\n", "    N = torch.tensor(n)\n"), graphs=1),
        fewer(
            "pass it as an argument",
            ("def f(x):", "def f(x, N):"),
            ("torch.ones(3))", "torch.ones(3), N)"),
            graphs=2,
        ),
    ),
    row(
        "global float",
        (C.FLOAT, O.GLOBAL),
        """
        A = 3.5

        def f(x):
            return x * A

        c = compile(f)
        for a in (3.5, 4.5, 5.5):
            A = a
            call(c, torch.ones(3))
        """,
        {"graphs": 2},
        fewer("set it once, before the first call", ("    A = a\n", ""), counts_only="another value", graphs=1),
        fewer("make it a tensor", ("    A = a\n", "    A = torch.tensor(a)\n"), graphs=1),
    ),
    row(
        "int of a closure",
        (C.NUMBER, O.GLOBAL),
        """
        def make(n):
            return lambda t: t + n

        def f(x, g):
            return g(x)

        c = compile(f)
        for n in (3, 4, 5):
            call(c, torch.ones(2), make(n))
        """,
        {"graphs": 2},
        fewer("make it a tensor", ("make(n))", "make(torch.tensor(n)))"), graphs=1),
        own_report="torch reports the guard of the closure only",
    ),
    row(
        "learning rate of a scheduler",
        (C.FLOAT, O.ATTRIBUTE),
        """
        p = torch.nn.Parameter(torch.ones(4))
        optimizer = torch.optim.SGD([p], lr=0.5)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step():
            optimizer.step()

        c = compile(step)
        for number in range(3):
            p.grad = torch.ones(4)
            c()
            scheduler.step()
            out(p)
        """,
        {"graphs": 2},
        fewer("make it a tensor", ("lr=0.5)", "lr=torch.tensor(0.5))"), graphs=1),
    ),
]

CHOICES = [
    row(
        "bool argument",
        C.CHOICE,
        """
        def f(x, flag):
            return x * 2 if flag else x + 1

        c = compile(f)
        for flag in (True, False):
            call(c, torch.ones(3), flag)
        """,
        {"graphs": 2},
        expected(
            "each value needs a compilation", "for flag in (False, True):\n    call(c, torch.ones(3), flag)", graphs=2
        ),
    ),
    row(
        "string that is a key",
        C.CHOICE,
        """
        d = {"a": torch.ones(3), "b": torch.zeros(3), "c": torch.full((3,), 2.0)}

        def f(x, key):
            return x + d[key]

        c = compile(f)
        for key in "abc":
            call(c, torch.ones(3), key)
        """,
        {"graphs": 3},
        fewer(
            "look that up before the call and pass the result",
            ("x + d[key]", "x + key"),
            ("torch.ones(3), key)", "torch.ones(3), d[key])"),
            graphs=1,
        ),
    ),
    row(
        "string argument",
        C.CHOICE,
        """
        def f(x, mode):
            return x + 1 if mode == "a" else x - 1

        c = compile(f)
        for mode in "abc":
            call(c, torch.ones(2), mode)
        """,
        {"graphs": 3},
        expected("each value needs a compilation", "for mode in 'cab':\n    call(c, torch.ones(2), mode)", graphs=3),
        says=("mode is 'b', and was compiled for 'a'",),
    ),
    row(
        "string of a module: an adapter that is chosen",
        (C.CHOICE, O.ATTRIBUTE),
        """
        class Adapted(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.adapters = torch.nn.ModuleDict({name: torch.nn.Linear(4, 4) for name in "abc"})

            def forward(self, x):
                return self.adapters[self.active](x)

        torch.manual_seed(0)
        m = Adapted()
        c = compile(m)
        for name in "abc":
            m.active = name
            call(c, torch.ones(3, 4))
        """,
        {"graphs": 3},
        expected("each value needs a compilation", "m.active = 'a'\ncall(c, torch.ones(3, 4))", graphs=3),
        fewer(
            "where one is enough, set it once",
            ("m.active = name", "m.active = 'b'"),
            counts_only="another adapter",
            graphs=1,
        ),
    ),
    row(
        "global string",
        (C.CHOICE, O.GLOBAL),
        """
        MODE = "a"

        def f(x):
            return x + 1 if MODE == "a" else x - 1

        c = compile(f)
        for mode in "ab":
            MODE = mode
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        expected("each value needs a compilation", "MODE = 'a'\ncall(c, torch.ones(2))", graphs=2),
        fewer("where one is enough, set it once", ("    MODE = mode\n", ""), counts_only="another mode", graphs=1),
    ),
    row(
        "dtype as an argument",
        C.CHOICE,
        """
        def f(x, dtype):
            return x.to(dtype)

        c = compile(f)
        for dtype in (torch.float16, torch.float64):
            call(c, torch.ones(2), dtype)
        """,
        {"graphs": 2},
        expected("each value needs a compilation", "call(c, torch.ones(2), torch.float16)", graphs=2),
        says=("dtype is torch.float64, and was compiled for torch.float16",),
    ),
    row(
        "device as an argument",
        C.CHOICE,
        """
        def f(x, device):
            return torch.ones(2, device=device).sum()

        c = compile(f)
        for device in (torch.device("cpu"), torch.device("meta")):
            c(torch.ones(2), device) if device.type == "cpu" else out(call(c, torch.ones(2), device).shape)
        """,
        {"graphs": 2},
        expected("each value needs a compilation", "c(torch.ones(2), torch.device('cpu'))", graphs=2),
        says=("device(type='meta')",),
    ),
    row(
        "memory format as an argument",
        C.CHOICE,
        """
        def f(x, layout):
            return x.contiguous(memory_format=layout) + 1

        c = compile(f)
        for layout in (torch.contiguous_format, torch.channels_last):
            call(c, torch.ones(2, 3, 4, 4), layout)
        """,
        {"graphs": 2},
        expected(
            "each value needs a compilation", "call(c, torch.ones(2, 3, 4, 4), torch.contiguous_format)", graphs=2
        ),
    ),
    row(
        "int of a subclass",
        C.NUMBER,
        """
        class Meters(int):
            pass

        def f(x, n):
            return x * n

        c = compile(f)
        for n in (3, 4):
            call(c, torch.ones(3), Meters(n))
        """,
        {"graphs": 2},
        fewer("pass it as a tensor", ("Meters(n))", "torch.tensor(n))"), graphs=1),
    ),
    row(
        "slice argument",
        (C.NUMBER, O.ATTRIBUTE),
        """
        def f(x, part):
            return x[part] + 1

        c = compile(f)
        for stop in (3, 4, 5):
            call(c, torch.ones(9), slice(0, stop))
        """,
        {"graphs": 2},
        fewer("compile with dynamic=True", DYNAMIC, graphs=1),
    ),
    row(
        "optional mask",
        C.NONE,
        """
        def f(x, mask):
            return x + 1 if mask is None else x * mask

        c = compile(f)
        for mask in (None, torch.ones(2)):
            call(c, torch.ones(2), mask)
        """,
        {"graphs": 2},
        expected("expect two compilations, and no more", "call(c, torch.ones(2), None)", graphs=2),
    ),
    row(
        "optional attribute",
        C.NONE,
        """
        class Cached(torch.nn.Module):
            cache = None

            def forward(self, x):
                return x + 1 if self.cache is None else x + self.cache

        m = Cached()
        c = compile(m)
        for cache in (None, torch.ones(2)):
            m.cache = cache
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        expected("expect two compilations, and no more", "m.cache = None\ncall(c, torch.ones(2))", graphs=2),
    ),
    row(
        "mode of a module",
        C.TRAINING,
        """
        m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.0))
        c = compile(m)
        for mode in (True, False):
            m.train(mode)
            call(c, torch.ones(2))
        """,
        {"graphs": 2},
        expected("expect two compilations, and no more", "m.train()\ncall(c, torch.ones(2))", graphs=2),
    ),
]

TESTED = [
    row(
        "float that a branch tests",
        C.TESTED,
        """
        def f(x, a):
            return x + 1 if a > 2.0 else x - 1

        c = compile(f)
        for a in (3.0, 4.0, 1.0):
            call(c, torch.ones(2), a)
        """,
        {"graphs": 3},
        fewer(
            "choose with torch.where",
            ("x + 1 if a > 2.0 else x - 1", "torch.where(a > 2.0, x + 1, x - 1)"),
            ("torch.ones(2), a)", "torch.ones(2), torch.tensor(a))"),
            graphs=1,
        ),
        fewer(
            "pass the result of the test",
            ("def f(x, a)", "def f(x, high)"),
            ("a > 2.0", "high"),
            ("torch.ones(2), a)", "torch.ones(2), a > 2.0)"),
            graphs=2,
        ),
        fewer("dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=2),
    ),
]

CONTAINERS = [
    row(
        "length of a list",
        C.LENGTH,
        """
        def f(x, xs):
            for each in xs:
                x = x + each
            return x

        c = compile(f)
        for n in (1, 2, 3):
            xs = [torch.full((2,), 1.0 + i) for i in range(n)]
            call(c, torch.ones(2), xs)
        """,
        {"graphs": 3},
        fewer(
            "use the same length each time",
            ("for i in range(n)]", "for i in range(n)] + [torch.zeros(2) for i in range(3 - n)]"),
            graphs=1,
        ),
        fewer(
            "passed as one tensor (torch.stack), with operations on that",
            ("    for each in xs:\n        x = x + each\n    return x", "    return x + xs.sum(0)"),
            ("torch.ones(2), xs)", "torch.ones(2), torch.stack(xs))"),
            graphs=2,
        ),
    ),
    row(
        "length of a list of an object",
        (C.LENGTH, O.ATTRIBUTE),
        """
        class History:
            def __init__(self):
                self.seen = []

            def f(self, x):
                return x + len(self.seen)

        h = History()
        c = compile(h.f)
        for n in range(3):
            call(c, torch.ones(2))
            h.seen.append(n)
        """,
        {"graphs": 3},
        fewer(
            "fill it before the first call",
            ("self.seen = []", "self.seen = [0, 1, 2]"),
            ("    h.seen.append(n)\n", ""),
            counts_only="the list is filled",
            graphs=1,
        ),
    ),
    row(
        "length of a global list",
        (C.LENGTH, O.GLOBAL),
        """
        SEEN = []

        def f(x):
            return x + len(SEEN)

        c = compile(f)
        for n in range(3):
            call(c, torch.ones(2))
            SEEN.append(n)
        """,
        {"graphs": 3},
        fewer(
            "fill it before the first call",
            ("SEEN = []", "SEEN = [0, 1, 2]"),
            ("    SEEN.append(n)\n", ""),
            counts_only="the list is filled",
            graphs=1,
        ),
        fewer(
            "write into a tensor of fixed size",
            ("SEEN = []", "SEEN = torch.zeros(3)"),
            ("x + len(SEEN)", "x + SEEN.sum()"),
            ("SEEN.append(n)", "SEEN[n] = 1"),
            graphs=1,
        ),
    ),
    row(
        "positional arguments",
        (C.LENGTH, O.POSITIONAL),
        """
        def f(x, *more):
            return x + sum(more)

        c = compile(f)
        for more in ((2,), (2, 3)):
            call(c, torch.ones(2), *more)
        """,
        {"graphs": 2},
        expected("each number of positional arguments needs a compilation", "call(c, torch.ones(2), 2)", graphs=2),
        fewer(
            "pass the same number each time",
            ("torch.ones(2), *more)", "torch.ones(2), *(torch.tensor(each) for each in (*more, 0, 0)[:2]))"),
            graphs=1,
        ),
    ),
    row(
        "keyword arguments",
        "keyword arguments",
        """
        def f(x, **kw):
            return x + sum(kw.values())

        c = compile(f)
        for kw in ({"a": 2}, {"a": 2, "b": 3}):
            call(c, torch.ones(2), **kw)
        """,
        {"graphs": 2},
        expected("each set of keyword arguments needs a compilation", "call(c, torch.ones(2), a=2)", graphs=2),
        says=("it is called with b",),
    ),
    row(
        "keys of a dict",
        C.KEYS,
        """
        def f(d):
            return sum(d.values())

        c = compile(f)
        for keys in ("ab", "abc"):
            d = {key: torch.ones(2) for key in keys}
            call(c, d)
        """,
        {"graphs": 2},
        fewer(
            "with the same keys", ("    call(c, d)", "    d.setdefault('c', torch.zeros(2))\n    call(c, d)"), graphs=1
        ),
    ),
    row(
        "keys that the function does not need",
        C.KEYS,
        """
        def f(d):
            return sum(d.values())

        c = compile(f)
        for name in "abc":
            d = {name: torch.ones(2)}
            call(c, d)
        """,
        {"graphs": 3},
        fewer(
            "pass a list of its values",
            ("sum(d.values())", "sum(d)"),
            ("call(c, d)", "call(c, list(d.values()))"),
            graphs=1,
        ),
    ),
    row(
        "submodules of a global module",
        (C.KEYS, O.GLOBAL),
        """
        m = torch.nn.Sequential(torch.nn.ReLU())

        def f(x):
            return m(x) + 1

        c = compile(f)
        for number in range(3):
            call(c, torch.ones(3, 4))
            m.append(torch.nn.ReLU())
        """,
        {"graphs": 3},
        fewer(
            "fill it before the first call",
            ("Sequential(torch.nn.ReLU())", "Sequential(*(torch.nn.ReLU() for i in range(3)))"),
            ("    m.append(torch.nn.ReLU())\n", ""),
            graphs=1,
        ),
        never=("a list of its values",),
    ),
    row(
        "state of an optimizer",
        "state of an optimizer",
        """
        p = torch.nn.Parameter(torch.ones(3))
        p.grad = torch.ones(3)
        opt = torch.optim.SGD([p], momentum=0.9)
        step = compile(lambda: opt.step())
        for number in range(3):
            step()
        out(p.detach().clone())
        """,
        {"graphs": 2},
        expected("expect one more compilation", "for number in range(3):\n    step()", graphs=2),
    ),
    row(
        "order of keys",
        C.KEYS,
        """
        def f(d):
            return sum(d.values())

        c = compile(f)
        for keys in ("ab", "ba"):
            d = {key: torch.ones(2) for key in keys}
            call(c, d)
        """,
        {"graphs": 2},
        fewer("in the same order each time", ("call(c, d)", "call(c, dict(sorted(d.items())))"), graphs=1),
    ),
    row(
        "submodules that are appended",
        (C.KEYS, O.ATTRIBUTE),
        """
        torch.manual_seed(0)
        m = torch.nn.Sequential(torch.nn.ReLU())
        c = compile(m)
        for number in range(3):
            call(c, torch.ones(3, 4))
            m.append(torch.nn.ReLU())
        """,
        {"graphs": 3},
        fewer(
            "fill it before the first call",
            ("Sequential(torch.nn.ReLU())", "Sequential(*(torch.nn.ReLU() for i in range(3)))"),
            ("    m.append(torch.nn.ReLU())\n", ""),
            graphs=1,
        ),
    ),
    row(
        "key that is missing",
        C.MEMBERS,
        """
        def f(d):
            return d["a"] + (d["b"] if "b" in d else 0)

        c = compile(f)
        for keys in ("ab", "a"):
            d = {key: torch.ones(2) for key in keys}
            call(c, d)
        """,
        {"graphs": 2},
        fewer(
            "keep the same keys", ("    call(c, d)", "    d.setdefault('b', torch.zeros(2))\n    call(c, d)"), graphs=1
        ),
        never=("check_no_aliasing",),
    ),
    row(
        "attribute that appears",
        C.ATTRIBUTES,
        """
        class Flags:
            pass

        def f(x, a):
            return x + 1 if hasattr(a, "k") else x - 1

        a = Flags()
        c = compile(f)
        call(c, torch.ones(2), a)
        a.k = 1
        call(c, torch.ones(2), a)
        """,
        {"graphs": 2},
        fewer(
            "keep the same attributes",
            ("a = Flags()\n", "a = Flags()\na.k = 1\n"),
            counts_only="set before",
            graphs=1,
        ),
    ),
    row(
        "items of a set",
        C.ITEMS,
        """
        def f(x, names):
            return x + 1 if "a" in names else x - 1

        c = compile(f)
        for names in ({"a"}, {"b"}):
            call(c, torch.ones(2), names)
        """,
        {"graphs": 2},
        fewer("pass the same items", ('({"a"}, {"b"})', '({"a"}, {"a"})'), counts_only="other names", graphs=1),
        never=("keys",),
    ),
]

ROWS = [*NUMBERS, *TESTED, *CHOICES, *CONTAINERS]
