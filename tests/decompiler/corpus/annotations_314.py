"""Annotations that are made when they are asked for (3.14 and later)."""

import annotationlib
import dataclasses

LIMIT: int = 3
names: 'list[str]'


class Settings:
    """What a module annotates lies behind marks."""

    depth: int = 1
    title: str = 'none'
    later: Missing
    if LIMIT > 2:
        deep: 'int' = 5
    else:
        flat: bool

    def limit(self) -> int:
        return self.depth


# run: module_annotations()
def module_annotations():
    return annotationlib.get_annotations(Settings, format=annotationlib.Format.FORWARDREF), LIMIT


# run: shown(Settings.limit)
def shown(owner):
    return annotationlib.get_annotations(owner, format=annotationlib.Format.STRING)


# run: parameters()
def parameters():
    def f(a: int, /, b: 'str' = 'y', *c: Missing, d: lambda: 1 = 2, **e: [1, 2]) -> None:
        return a

    return shown(f), f(1), f.__kwdefaults__


# run: starred()
def starred():
    def f(*args: *tuple[int, str]):
        return args

    return f.__annotations__


# run: closure_annotation(int)
def closure_annotation(kind):
    def f(a: kind, b: list[kind]) -> dict[str, kind]:
        return a, b

    return f.__annotations__


# run: local_class(5)
def local_class(limit):
    class Local:
        first: int
        second: 'str' = 'two'
        third: limit = 3

        def method(self, other: Local, more: second) -> first:
            return other

        fourth: third

    return shown(Local), shown(Local.method), Local.__annotations__['third']


# run: conditional(0)
# run: conditional(1)
def conditional(flag):
    class Local:
        always: int
        if flag:
            yes: str = 'y'
        else:
            no: bytes
        for name in 'ab':
            loop: float = 1.5
        try:
            tried: int = 1 // flag
        except ZeroDivisionError:
            caught: complex
        last: list = []

    return shown(Local), sorted(vars(Local))


# run: never()
def never():
    class Local:
        if False:
            never: Missing
        if __debug__:
            debug: int
        always: str

    return shown(Local)


# run: class_sees_itself()
def class_sees_itself():
    class Tree:
        left: Tree
        right: 'Tree'
        int: int = 3

        def walk(self, depth: int) -> list[Tree]:
            return []

    return shown(Tree), shown(Tree.walk), Tree.walk.__annotations__['depth']


# run: fields()
def fields():
    @dataclasses.dataclass
    class Point:
        x: int
        y: int = 2

        def total(self) -> int:
            return self.x + self.y

    return Point(1), Point(3, 4).total()


# run: late_assignment()
def late_assignment():
    class Late:
        a: int
        b: int = 1
        c: int = 2

        def f(self):
            return self.a

        a = 7

    return Late.__annotations__, Late().f()


# run: out_of_order()
def out_of_order():
    class Mixed:
        b = 2
        a: int = 1
        b: str
        c = d = 3
        d: bytes

    return Mixed.__annotations__, Mixed.b, Mixed.d


# run: comprehension_in_annotation()
def comprehension_in_annotation():
    def f(a: [x for x in (1, 2)], b: (lambda y: y)(3), c: {k: v for k, v in ((1, 2),)}) -> tuple(x for x in 'ab'):
        return a

    return f.__annotations__


# run: expressions()
def expressions():
    def f(a: int if LIMIT else str, b: int and str or bytes, c: f'{LIMIT}', d: not LIMIT, e: 1 < LIMIT < 4) -> -1:
        return a

    return f.__annotations__


# run: annotated_lambda_default()
def annotated_lambda_default():
    def f(a: int = (lambda: 5)(), *, b: (lambda: str)() = None):
        return a

    return f.__annotations__, f()


# run: mangled()
def mangled():
    class Local:
        __private: int = 1

        def f(self, __x: __private) -> None:
            return __x

    return Local.__annotations__


# run: nested_functions(2)
def nested_functions(a):
    def outer(x: int) -> str:
        def inner(y: x) -> a:
            return y

        return inner

    return outer(1).__annotations__, outer.__annotations__


# run: coroutine_annotated()
def coroutine_annotated():
    async def f(a: int) -> str:
        return a

    def g(a: int) -> list:
        yield a

    return f.__annotations__, g.__annotations__


# run: format_parameter(annotationlib.Format.VALUE)
# run: format_parameter(annotationlib.Format.FORWARDREF)
def format_parameter(how):
    def f(a: format, b: int):
        return a

    try:
        return f.__annotate__(how)
    except NotImplementedError:
        return 'not implemented'


# run: written_annotate()
def written_annotate():
    class Plain:
        def __annotate__(format):
            return {'a': int}

    class Both:
        a: int

        def __annotate__(format):
            return {'a': str}

    return Plain.__annotations__, Both.__annotate__(1)


class Place:
    """Attributes and items can be annotated anywhere, and that leaves a cell and nothing else."""

    kept = []


# run: only_attributes_annotated(1, Place), only_attributes_annotated(0, Place)
def only_attributes_annotated(a, place):
    class Conditional:
        def f(self):
            return a
        if a:
            place.kept[:]: list = [a]
        (b): str = 4

    class Plain:
        place.name: int = a
        place.other: str

    class Both:
        place.name: int
        c: str = 'c'

    place.name: int
    return Conditional().f(), Conditional.b, place.kept, Plain.__annotations__, Both.__annotations__


Place.kept: list
