"""All kinds of arguments, of calls and of function objects."""

import functools


# run: no_arguments()
def no_arguments():
    return 1


# run: positional(1, 2)
# run: positional(b=1, a=2)
def positional(a, b):
    return a - b


# run: with_defaults(1)
# run: with_defaults(1, 5, z=7)
def with_defaults(a, b=2, *, z=3):
    return a, b, z


# run: positional_only(1, 2)
# run: positional_only(a=1, b=2)
def positional_only(a, /, b):
    return a, b


# run: positional_only_defaults(1)
# run: positional_only_defaults(1, 2, 3)
def positional_only_defaults(a, b=10, /, c=20):
    return a, b, c


# run: keyword_only(k=1)
# run: keyword_only()
def keyword_only(*, k):
    return k


# run: star_arguments(1, 2, 3)
def star_arguments(*args):
    return args


# run: double_star(a=1, b=2)
def double_star(**kwargs):
    return sorted(kwargs.items())


# run: every_kind(1, 2, 3, 4, 5, k=6, m=7, n=8)
# run: every_kind(1, 2, k=0)
# run: every_kind(1)
def every_kind(a, b, /, c=3, *args, k, l=5, **kwargs):
    return a, b, c, args, k, l, kwargs


# run: star_then_keyword(1, 2, key=3)
def star_then_keyword(*values, key=None):
    return values, key


# run: unused_arguments(1, 2)
def unused_arguments(a, b):
    pass


# run: mutable_default()
# run: mutable_default([1])
def mutable_default(items=()):
    return [*items, 1]


# run: call_positional(print)
def call_positional(f):
    return f(1, 2, 3)


# run: call_keywords(dict)
def call_keywords(f):
    return f(a=1, b=2)


# run: call_mixed(lambda *a, **k: (a, k))
def call_mixed(f):
    return f(1, 2, c=3, d=4)


# run: call_star(max, [1, 5, 2])
def call_star(f, a):
    return f(*a)


# run: call_double_star(dict, {'a': 1})
def call_double_star(f, k):
    return f(**k)


# run: call_star_and_more(lambda *a, **k: (a, k), [1, 2], {'x': 3})
def call_star_and_more(f, a, k):
    return f(0, *a, 9, y=8, **k)


# run: call_two_stars(lambda *a, **k: (a, k), [1], [2], {'x': 3}, {'y': 4})
# run: call_two_stars(lambda *a, **k: (a, k), [1], [2], {'x': 3}, {'x': 4})
def call_two_stars(f, a, b, k, m):
    return f(*a, *b, **k, **m)


# run: call_star_between(lambda *a, **k: (a, k), [1, 2])
def call_star_between(f, a):
    return f(*a, 3, *a, key=1)


# run: call_tuple_star(lambda *a, **k: (a, k), (1, 2), {'z': 1})
def call_tuple_star(f, a, k):
    return f(*a, **k)


# run: call_keyword_then_double(lambda *a, **k: (a, k), {'z': 1})
def call_keyword_then_double(f, k):
    return f(a=1, **k, b=2)


# run: method_call('a,b')
def method_call(s):
    return s.split(',')


# run: method_keywords('abc')
def method_keywords(s):
    return s.encode(encoding='ascii', errors='strict')


# run: method_star('{}{}', [1, 2])
def method_star(s, a):
    return s.format(*a)


# run: chained_calls('  a b  ')
def chained_calls(s):
    return s.strip().upper().split(' ')


# run: nested_calls([3, 1])
def nested_calls(a):
    return list(map(str, sorted(set(a))))


# run: call_result(lambda: lambda x: x + 1)
def call_result(f):
    return f()(2)


# run: call_attribute_of_item([[1]])
def call_attribute_of_item(a):
    a[0].append(2)
    return a


# run: call_order(print)
def call_order(p):
    return [p(1), p(2)], {p(3): p(4)}


# run: with_docstring()
def with_docstring():
    """It says what it does.

    On two lines."""
    return with_docstring.__doc__


# run: annotated(1, b='x')
def annotated(a: int, *, b: 'str' = 'y') -> tuple:
    return a, b


# run: default_from_name()
def default_from_name(a=len, b=(1, 2), c=None):
    return a(b), c


# run: inner_defaults(3)
def inner_defaults(n):
    def inner(a, b=n, *c, d=n + 1, e, **f):
        return a, b, c, d, e, f

    return inner(1, e=2), inner(1, 2, 3, d=4, e=5, g=6)


# run: inner_annotations()
def inner_annotations():
    def inner(a: int, b: list = None) -> str:
        return a

    return inner.__annotations__


# run: inner_positional_only()
def inner_positional_only():
    def inner(a, b=1, /, c=2, *, d, e=3):
        return a, b, c, d, e

    return inner(0, d=9)


# run: inner_generator_argument([1, 2, 3])
def inner_generator_argument(a):
    return sum(x * x for x in a), max((x for x in a), default=0)


# run: many_arguments(lambda *a: len(a))
def many_arguments(f):
    return f(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
             29, 30, 31, 32, 33, 34, 35)


# run: displays_as_arguments(lambda *a, **k: (a, k), [1], {'c': 2})
# run: displays_as_arguments(lambda *a, **k: (a, k), (), {})
# run: displays_as_arguments(lambda *a, **k: (a, k), 'ab', {'x': 3})
def displays_as_arguments(f, b, c):
    print(f(*(f, *b), **c)[1], f(*(1, *b), *c), f(*[1, *b]), f(*(1,), **c), f(*(), **c), f(*(1, 2), **{}))
    print(f(**{'x': b}), f(**{**c}, y=b), f(**{}, **c), f(**c, **{}), f(z=1, **{'y': 2}, **c), f(**{'y': 2}, z=1))
    try:
        print(f(**c, **{'x': b, 'y': 1}), f(**c, **{'z': b, **c}))
    except TypeError as error:
        print('twice', 'x' in str(error))
    return f(*b, 1, *(2, *b), z=3, **{'y': b, **c})


# run: many_keywords(lambda **k: k, 1, 0)
# run: many_keywords(lambda **k: k, 0, 2)
# run: many_keywords(print, 1, 2)
def many_keywords(f, x, y):
    return f(a=x, b=y, c=x and f(z=y), d=y or f(z=x), e=x if y else f(), g=x, h=-x, i=3, j=4, k=5, l=6, m=7, n=8,
             o=9, p=x and y, q=[y for y in 'ab'], r=lambda: 1, s=x < y < 3, t=not y)["a"]


# run: keywords_after_a_test(lambda **k: sorted(k.items()), 1)
# run: keywords_after_a_test(lambda **k: sorted(k.items()), 0)
def keywords_after_a_test(f, x):
    y = x and f(x=x)
    f(a=1, b=x and f(), c=1, d=1, e=1, f=1, g=1, h=1, i=1, j=1, k=1, l=1, m=1, n=1, o=1, p=1, q=1, r=1)
    return f(a=y, b=x and f(), c=1, d=1, e=1, f=1, g=1, h=1, i=1, j=1, k=1, l=1, m=1, n=1, o=1, p=1, q=1, r=x or 3)


# run: many_keywords_of_a_module(1)
def many_keywords_of_a_module(x):
    return functools.partial(dict, a=x, b=x + 1, c=x and 2, d=1, e=1, f=1, g=1, h=1, i=1, j=1, k=1, l=1, m=1, n=1, o=1,
                             p=1, q=1, r=1)()
