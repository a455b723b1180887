"""What the .pyc files in pycs/ were compiled from, by each Python: tools/write_pyc_specimens.py."""

import os.path as path

NUMBERS = (0, -1, 2**31 - 1, -(2**31), 2**63, -10000000000000000000000000000000000000000, 1.5, -0.0, 1e300, 2j, 1 - 0.5j)
TEXTS = ("ascii", "", "x" * 300, "\u00e4\u20ac\U0001f600", "\ud800", b"bytes\x00\xff", ...)


def outer(a, b=1, *args, c, d=NUMBERS, **kwargs):
    """A function with everything."""
    counter = 0

    class Local:
        """A class in a function."""

        field: int = 3

        def method(self):
            nonlocal counter
            counter += 1
            return super().__init__(), __class__

    def inner():
        global made_global

        def made_global():
            return path.join("a", "b")

        return [x + counter for x in args if x in {"some", "set"}]

    try:
        return Local, inner, lambda: (a, kwargs)
    except (ValueError, OSError) as error:
        raise RuntimeError from error


class Top:
    async def method(self, items):
        async with items as opened:
            async for item in opened:
                yield item

    class Nested:
        def method(self):
            return self[1:2], {key: value for key, value in self.items()}
