"""Classes inside functions: bodies, bases, keywords, super, class variables."""


# run: empty_class().__name__
def empty_class():
    class Empty:
        pass

    return Empty


# run: class_with_docstring()
def class_with_docstring():
    class Documented:
        """A class."""

    return Documented.__doc__, Documented.__qualname__


# run: class_attributes()
def class_attributes():
    class Point:
        x = 1
        y = x + 1
        z: int = 3
        w: 'str'

    return Point.x, Point.y, Point.z, Point.__annotations__


# run: methods(3)
def methods(n):
    class Adder:
        def __init__(self, base):
            self.base = base

        def add(self, other):
            return self.base + other

        @property
        def double(self):
            return self.base * 2

        @double.setter
        def double(self, value):
            self.base = value // 2

        @staticmethod
        def static(a):
            return a

        @classmethod
        def make(cls, *args):
            return cls(*args)

    adder = Adder.make(n)
    adder.double = 10
    return adder.add(4), adder.double, Adder.static(2)


# run: bases()
def bases():
    class Base:
        kind = 'base'

    class Other:
        pass

    class Derived(Base, Other):
        pass

    return [c.__name__ for c in Derived.__mro__], Derived.kind


# run: star_bases((dict,))
def star_bases(classes):
    class Derived(*classes):
        pass

    return Derived.__bases__


# run: keywords_of_class()
def keywords_of_class():
    class Meta(type):
        def __new__(mcls, name, bases, namespace, flag=False, **rest):
            print(name, flag, rest)
            return super().__new__(mcls, name, bases, namespace)

        def __init__(cls, name, bases, namespace, **rest):
            super().__init__(name, bases, namespace)

    class Made(metaclass=Meta, flag=True, extra=1):
        pass

    return type(Made).__name__


# run: init_subclass()
def init_subclass():
    class Base:
        def __init_subclass__(cls, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.tag = tag

    class Child(Base, tag='x'):
        pass

    return Child.tag


# run: super_call(2)
def super_call(n):
    class Base:
        def value(self):
            return n

    class Derived(Base):
        def value(self):
            return super().value() + 1

    return Derived().value()


# run: class_cell()
def class_cell():
    class Me:
        def who(self):
            return __class__.__name__

    return Me().who()


# run: closure_in_class(4)
def closure_in_class(n):
    class Holder:
        value = n

        def get(self):
            return n + self.value

    return Holder().get()


# run: class_variable_shadows(1)
def class_variable_shadows(x):
    class Shadow:
        x = x

    return Shadow


# run: class_body_loop()
def class_body_loop():
    class Looped:
        total = 0
        for i in range(4):
            total += i
        del i

    return Looped.total, hasattr(Looped, 'i')


# run: class_body_condition(True)
# run: class_body_condition(False)
def class_body_condition(flag):
    class Conditional:
        if flag:
            def method(self):
                return 'a'
        else:
            method = None

    return Conditional().method and Conditional().method()


# run: class_body_try()
def class_body_try():
    class Careful:
        try:
            import no_such_module_at_all
        except ImportError:
            no_such_module_at_all = None

    return Careful.no_such_module_at_all


# run: class_comprehension()
def class_comprehension():
    class Squares:
        names = ['a', 'b']
        table = {name: i for i, name in enumerate(names)}

    return Squares.table


# run: nested_class()
def nested_class():
    class Outer:
        class Inner:
            value = 1

        def make(self):
            return self.Inner()

    return Outer().make().value, Outer.Inner.__qualname__


# run: decorated_class()
def decorated_class():
    def mark(cls):
        cls.marked = True
        return cls

    @mark
    class Plain:
        pass

    return Plain.marked


# run: dataclass_inside()
def dataclass_inside():
    from dataclasses import dataclass, field

    @dataclass(order=True)
    class Item:
        name: str
        price: float = 0.0
        tags: list = field(default_factory=list)

    return Item('a', 2.0) < Item('b'), Item('c')


# run: named_tuple_class()
def named_tuple_class():
    from typing import NamedTuple

    class Pair(NamedTuple):
        a: int
        b: int = 2

        def total(self):
            return self.a + self.b

    return Pair(1).total(), Pair(1, 5)


# run: enum_class()
def enum_class():
    import enum

    class Colour(enum.Enum):
        RED = 1
        GREEN = 2

        @property
        def pretty(self):
            return self.name.lower()

    return [c.pretty for c in Colour]


# run: private_names()
def private_names():
    class Secret:
        __hidden = 1

        def __init__(self):
            self.__own = 2

        def get(self):
            return self.__hidden + self.__own

        def __helper(self):
            return 3

        def call(self):
            return self.__helper()

    return Secret().get(), Secret().call(), sorted(n for n in vars(Secret) if 'Secret' in n)


# run: slots_and_dunder()
def slots_and_dunder():
    class Slotted:
        __slots__ = ('a', 'b')

        def __init__(self, a, b):
            self.a, self.b = a, b

        def __eq__(self, other):
            if not isinstance(other, Slotted):
                return NotImplemented
            return (self.a, self.b) == (other.a, other.b)

        def __repr__(self):
            return f'Slotted({self.a!r}, {self.b!r})'

    return Slotted(1, 2) == Slotted(1, 2), repr(Slotted(1, 'x')), Slotted(1, 2) == 3


# run: exception_class()
def exception_class():
    class Oops(Exception):
        def __init__(self, code):
            super().__init__(f'code {code}')
            self.code = code

    try:
        raise Oops(4)
    except Oops as oops:
        return str(oops), oops.code


# run: class_uses_global()
def class_uses_global():
    class Reader:
        global FROM_CLASS
        FROM_CLASS = 'set'

    return FROM_CLASS, hasattr(Reader, 'FROM_CLASS')


# run: class_with_nonlocal()
def class_with_nonlocal():
    value = 1

    class Changer:
        nonlocal value
        value = 2

    return value, hasattr(Changer, 'value')


# run: generic_class()
def generic_class():
    from typing import Generic, List, TypeVar

    T = TypeVar('T')

    class Box(Generic[T]):
        items: List[T]

    return Box.__parameters__ == (T,)


# run: local_in_class_method()
def local_in_class_method():
    class A:
        def f(self):
            class B:
                def g(self):
                    return super().__repr__() is not None

            return B().g()

    return A().f()


# run: annotations_that_went_away().__annotations__
def annotations_that_went_away():
    class Empty:
        """It has annotations, though none is left."""

        if 0:
            x: int = 1

        def method(self):
            return self

    return Empty


# run: mentions_in_annotations()(2).value
def mentions_in_annotations():
    kind = int

    class Holder:
        def __init__(self, value):
            super().__init__()
            self.value: kind = value

    return Holder


# run: class_variable_taken().f()
def class_variable_taken():
    class Taken:
        def f():
            nonlocal __class__
            first = __class__.__name__
            __class__ = first
            return __class__

        def mentions():
            if 0:
                __class__

    return Taken


# run: super_in_two_ways()
def super_in_two_ways():
    class Base:
        def __init__(self):
            self.made = True

    class Derived(Base):
        def __init__(self):
            parent = super(Derived, self)
            parent.__init__()

        def made_by_base(self):
            return super().__init__(), self.made

    return Derived().made_by_base()


# run: class_that_ends_in_branches(1)
# run: class_that_ends_in_branches(0)
def class_that_ends_in_branches(a):
    class Base:
        def parent(self):
            return super().__init__()

        if a:
            times = 1

            def call(self):
                return 1
        else:
            times = 2

            def call(self):
                return 2

    return Base().parent(), Base().times, Base().call()


# run: class_with_two_names_for_a_function()
def class_with_two_names_for_a_function():
    class Target:
        start = end = lambda *a: len(a)
        data = [start]
        first = data[0:] = lambda: 0

    return Target().start(1), Target().end(), Target.first()


# run: class_that_stores_outside()
def class_that_stores_outside():
    __firstlineno__ = __static_attributes__ = 1

    class Target:
        nonlocal __firstlineno__, __static_attributes__

        def method(self):
            self.x = self.y = 3

    return type(__firstlineno__), sorted(map(str, getattr(Target, '__static_attributes__', ())))


# run: class_that_stores_in_globals()
def class_that_stores_in_globals():
    class Target:
        global __qualname__, __module__, __firstlineno__
        x = 1

    return Target.x, globals().pop('__qualname__'), globals().pop('__module__')


# run: conditions_in_class((9, 1), 0, 1), conditions_in_class((8, 9), 1, 0), conditions_in_class((1,), 0, 0)
def conditions_in_class(a, b, c):
    class First:
        y = '' if a >= (9, 0) else -1 if a >= (8, 7) else ''
        print(y if b else c if c else y)

    class Second(First):
        if a:
            z = (a and b) if c else c if b else (a and b)

    return First.y, Second.z


_given, _other = 1, 0


# A constant among the tests of a condition is gone from the bytecode; the jumps that are left are those of an `or`.
# run: ConstantTests.first, ConstantTests.second, ConstantTests.third, ConstantTests.fourth
class ConstantTests:
    first = 2 if ('s' if _given else _other) else {}
    second = print(2 if ('s' if _other else _given) else {})
    third = [_other or (3 if (1 if _other else _other) else _given)]
    fourth = repr(_given) if (_given and _other if 1 else _other) else {}
