"""A module that mentions ``super`` outside of functions: there, ``super().name`` is compiled as any other call (3.12)."""

parent = super


# run: calls_a_method_of_the_parent()
def calls_a_method_of_the_parent():
    class Base:
        def describe(self, *args, **kwargs):
            return "base", args, kwargs

    class Derived(Base):
        def describe(self, *args, **kwargs):
            return super().describe(*args, x=1, **kwargs), super(Derived, self).describe(), parent(Derived, self)

        @classmethod
        def name(cls):
            return super().__new__(cls).describe(2)[:2]

    return Derived().describe(3, y=4)[:2], Derived.name()
