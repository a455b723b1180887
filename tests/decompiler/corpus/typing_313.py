"""Type parameters with defaults (PEP 696), what class bodies store, annotated formats."""


# run: defaults_of_parameters()
def defaults_of_parameters():
    def function[T = int, *Ts = *tuple[int, str], **P = [int]](x: T):
        return x

    class Class[T: int = bool, U = T]:
        pass

    type Alias[T = list[Alias]] = dict[T, int]
    return (
        [parameter.__default__ for parameter in function.__type_params__],
        [parameter.__default__ for parameter in Class.__type_params__],
        Alias.__type_params__[0].__default__,
    )


# run: static_attributes()
def static_attributes():
    class Point:
        """A point.

        It has two coordinates.
        """

        def __init__(self, x, y):
            """Documented,
            on two lines."""
            self.x, self.y = x, y

        def move(self):
            self.moved = True

    return sorted(Point.__static_attributes__), Point.__doc__, Point.__init__.__doc__


# run: converted_before_the_specification([])
def converted_before_the_specification(seen):
    class Noted:
        def __repr__(self):
            seen.append("repr")
            return "noted"

    def width():
        seen.append("width")
        return 8

    return f"{Noted()!r:>{width()}}", f"{Noted()!s}{Noted()!a:<7}", seen
