"""Type parameters and type aliases (PEP 695)."""


# run: generic_function()
def generic_function():
    def identity[T](x: T) -> T:
        return x

    return identity(3), identity.__type_params__, identity.__annotations__


# run: kinds_of_parameters()
def kinds_of_parameters():
    def function[T, U: int, V: (int, str), *Ts, **P](x: T, *args: *Ts) -> U:
        return x, T.__name__

    bounds = [getattr(parameter, "__bound__", None) for parameter in function.__type_params__]
    constraints = function.__type_params__[2].__constraints__
    return function(1), function.__type_params__, bounds, constraints, function.__annotations__


# run: with_defaults(5)
def with_defaults(z):
    def positional[T](a: T = z) -> T:
        return a

    def keyword[T](*, b: T = z):
        return b

    def both[T](a, c=z, *, d: T = z + 1):
        return a, c, d

    return positional(), keyword(), both(0)


# run: generic_class()
def generic_class():
    class Plain[T]:
        pass

    class Box[T, *Rest](Plain[T], metaclass=type):
        """A box."""

        content: T

        def put(self, content: T) -> None:
            self.content = content
            return T

        def convert[U](self, other: U) -> tuple[T, U]:
            return T, U

        type Pair[V] = tuple[T, V]

    box = Box()
    return (
        Box.__type_params__,
        Box.__orig_bases__,
        box.put(1),
        box.convert(2),
        Box.Pair.__value__,
        Box.__doc__,
        Box.__annotations__,
    )


# run: bases_that_are_unpacked((int,))
def bases_that_are_unpacked(bases):
    class Number[T](*bases):
        pass

    return Number.__mro__[1:], Number(3) + 1


# run: aliases(list)
def aliases(kind):
    type Plain = kind
    type Recursive = tuple[Recursive, int]
    type Generic[T, **P] = dict[T, kind]
    return Plain.__value__, Recursive.__value__, Generic.__type_params__, Generic.__value__


# run: lazily_evaluated()
def lazily_evaluated():
    type Wrong = missing
    def bounded[T: missing]():
        return T

    try:
        Wrong.__value__
    except NameError as error:
        return str(error), bounded().__name__


# run: decorated([])
def decorated(seen):
    def note(thing):
        seen.append(thing.__name__)
        return thing

    @note
    @note
    def function[T](x: T = len(seen)):
        return x, T

    @note
    class Class[T](list[T]):
        pass

    return function(), Class.__type_params__, seen


# run: members_in_annotation_scopes()
def members_in_annotation_scopes():
    class Holder:
        Number = int
        type Alias = Number
        type Nested = list[Number]

        def method[T: Number](self, x: T) -> Number:
            return T.__bound__

        class Inner[S: Number]:
            type Deep = tuple[S, float]

    return Holder.Alias.__value__, Holder.Nested.__value__, Holder().method(1), Holder.Inner.Deep.__value__


# run: generators_and_coroutines([1, 2])
def generators_and_coroutines(xs):
    def numbers[T](ys: list[T]):
        yield from ys
        yield T.__name__

    async def wait[T](x: T):
        return x, T.__name__

    try:
        wait(1).send(None)
    except StopIteration as stop:
        return list(numbers(xs)), stop.value


# run: comprehensions_and_lambdas([1, 2])
def comprehensions_and_lambdas(xs):
    class Holder[T]:
        made = [(x, T.__name__) for x in xs]
        later = lambda: T

    def function[T](ys=[x for x in xs]):
        return [(T, y) for y in ys], (lambda: T)()

    return Holder.made, Holder.later(), function()


# run: comprehension_over_the_parameter_itself()
def comprehension_over_the_parameter_itself():
    def function[T: [lambda: T for T in (T, [1])[1]]]():
        return [lambda: T for T in T.__name__]

    type Alias[T: [lambda: T for T in (T, [1])[1]]] = [lambda: T for T in T.__name__]
    bounds = [function.__type_params__[0].__bound__, Alias.__type_params__[0].__bound__]
    return [inner() for made in [function(), Alias.__value__, *bounds] for inner in made]


# run: parameter_never_reached()
def parameter_never_reached():
    def function[T]():
        def inner():
            if False:
                print(T)
            return 5

        return inner

    return function()(), function().__code__.co_freevars
