"""Postponed annotations that name the class around them: before 3.10 the name is a free variable of the class then."""

from __future__ import annotations


# run: nested_class()
def nested_class():
    class Inner:
        x: Missing
        y: list[Missing] = []
        z: "'twice'" = ()

        def method(self, other: Inner) -> Inner:
            self.a: int = 1
            return self.a

    return Inner.__annotations__, Inner().method(1), Inner.method.__annotations__
