"""Operators, literals, displays, subscripts, f-strings."""


# run: arithmetic(7, 3)
def arithmetic(a, b):
    return a + b, a - b, a * b, a / b, a // b, a % b, a ** b


# run: bitwise(6, 3)
def bitwise(a, b):
    return a & b, a | b, a ^ b, a << b, a >> b


# run: unary(5)
def unary(a):
    return -a, +a, ~a, not a


class Matrix:
    def __matmul__(self, other):
        return 'matmul'

    def __imatmul__(self, other):
        return 'imatmul'


# run: matrix_product(Matrix())
def matrix_product(m):
    return m @ m


# run: precedence(2, 3, 4)
def precedence(a, b, c):
    return a + b * c, (a + b) * c, a - (b - c), a ** -b, (-a) ** b, -a ** b, a ** b ** c, (a ** b) ** c


# run: precedence_bits(2, 3, 4)
def precedence_bits(a, b, c):
    return a | b & c, (a | b) & c, a << b + c, ~a & b, not a == b


# run: augmented(7, 3)
def augmented(a, b):
    a += b
    a -= 1
    a *= b
    a //= 2
    a %= 5
    a **= b
    a <<= 2
    a >>= 1
    a &= 255
    a |= 8
    a ^= b
    return a


# run: augmented_division(7)
def augmented_division(a):
    a /= 2
    return a


# run: augmented_matmul(Matrix())
def augmented_matmul(m):
    m @= m
    return m


# run: augmented_attribute()
def augmented_attribute():
    class Box:
        x = 1

    Box.x += 2
    return Box.x


# run: augmented_item([1, 2])
def augmented_item(a):
    a[0] += 5
    a[-1] *= 2
    return a


# run: augmented_slice([1, 2, 3])
def augmented_slice(a):
    a[1:] += [4]
    return a


# run: augmented_nested({'a': [1]})
def augmented_nested(d):
    d['a'][0] -= 1
    return d


# run: integers()
def integers():
    return 0, 1, 255, 256, -1, 10 ** 20, 12345678901234567890, 0xFF, 0b101


# run: floats()
def floats():
    return 0.0, -0.0, 1.5, 1e100, 1e-7, 1e309, -1e309, 3.141592653589793


# run: complexes()
def complexes():
    return 1j, 2 + 3j, -1j, 0j, 1.5 - 2j


# run: minus_zero()
def minus_zero():
    return str(-0.0), str((-0.0, 0.0)), str(-0j)


# run: strings()
def strings():
    return '', 'a', "it's", 'say "hi"', 'both \' and "', 'tab\t', 'new\nline', 'back\\slash', '\x00\x7f', 'é', '\U0001f600'


# run: surrogate_string()
def surrogate_string():
    return ascii('\ud800'), len('\ud800x')


# run: long_string()
def long_string():
    return 'line one\nline two\n\n    indented\n"""quotes"""\n'


# run: byte_strings()
def byte_strings():
    return b'', b'abc', b'\x00\xff', b"it's", b'a' b'b'


# run: singletons()
def singletons():
    return None, True, False, Ellipsis, ..., NotImplemented


# run: constant_tuple()
def constant_tuple():
    return (1, 'a', None, (2, 3), b'x', 1.5)


# run: empty_displays()
def empty_displays():
    return (), [], {}, set()


# run: displays(1, 2)
def displays(a, b):
    return (a, b), [a, b], {a, b}, {a: b, b: a}


# run: one_tuple(1)
def one_tuple(a):
    return (a,)


# run: constant_list()
def constant_list():
    return [1, 2, 3, 4, 5]


# run: constant_set()
def constant_set():
    return sorted({1, 2, 3, 4})


# run: constant_dict()
def constant_dict():
    return {'a': 1, 'b': [2], 'c': {'d': 3}}


# run: large_dict()
def large_dict():
    return {'a': 1, 'b': 2, 'c': 3, 'd': 4, 'e': 5, 'f': 6, 'g': 7, 'h': 8, 'i': 9, 'j': 10, 'k': 11, 'l': 12,
            'm': 13, 'n': 14, 'o': 15, 'p': 16, 'q': 17, 'r': 18, 's': 19, 't': 20}


# run: mixed_display(1)
def mixed_display(a):
    return [1, a, 'x', [a], (a, 2)]


# run: starred_displays([1, 2])
def starred_displays(a):
    return [*a], (*a,), {*a}, [0, *a], (*a, 3), [*a, *a]


# run: dict_unpacking({'a': 1})
def dict_unpacking(d):
    return {**d}, {'x': 0, **d}, {**d, 'a': 2}, {**d, **d}


# run: subscripts([1, 2, 3], {'k': [4]})
def subscripts(a, d):
    return a[0], a[-1], d['k'][0]


# run: slices([1, 2, 3, 4, 5])
def slices(a):
    return a[:], a[1:], a[:2], a[1:3], a[::2], a[::-1], a[1:-1:2], a[-2:]


# run: slice_variables([1, 2, 3, 4], 1, 3)
def slice_variables(a, i, j):
    return a[i:j], a[i:], a[:j], a[i:j:2], a[i + 1:j + 1]


class Grid:
    def __getitem__(self, key):
        return key

    def __setitem__(self, key, value):
        print('set', key, value)

    def __delitem__(self, key):
        print('del', key)


# run: tuple_subscripts(Grid())
def tuple_subscripts(g):
    return g[1, 2], g[1:2, 3], g[..., None], g[()], g[1,], g[::2, ::-1]


# run: slice_assignment([1, 2, 3, 4])
def slice_assignment(a):
    a[1:2] = 'xy'
    a[::2] = [0, 0, 0]
    return a


# run: slice_deletion([1, 2, 3, 4])
def slice_deletion(a):
    del a[1:3]
    return a


# run: grid_statements(Grid())
def grid_statements(g):
    g[1, 2:3] = 4
    del g[5, ...]
    g[0] = g[1] = 2


# run: attributes(Grid)
def attributes(c):
    c.x = 1
    c.y = c.x
    del c.x
    return c.y, hasattr(c, 'x')


# run: attribute_chain()
def attribute_chain():
    import os.path

    return os.path.sep.join(['a', 'b'])


# run: attribute_of_literal()
def attribute_of_literal():
    return (1).bit_length(), 1.5.hex(), 'a'.upper(), [].__len__(), {}.get(1), b''.hex()


# run: call_of_lambda()
def call_of_lambda():
    return (lambda x: x + 1)(2)


# run: fstring_plain('a')
def fstring_plain(a):
    return f'{a}'


# run: fstring_text('a', 2)
def fstring_text(a, b):
    return f'x {a} y {b} z'


# run: fstring_conversions('é')
def fstring_conversions(a):
    return f'{a!r} {a!s} {a!a}'


# run: fstring_format(3.14159)
def fstring_format(a):
    return f'{a:.2f} {a:>10} {a:<10}|'


# run: fstring_nested_format(3.14159, 3)
def fstring_nested_format(a, n):
    return f'{a:.{n}f} {a:{n + 5}.{n}}'


# run: fstring_conversion_format('a')
def fstring_conversion_format(a):
    return f'{a!r:>6}'


# run: fstring_equals(3)
def fstring_equals(a):
    return f'{a=} {a + 1 = } {a=:>4} {a=!s}'


# run: fstring_braces(1)
def fstring_braces(a):
    return f'{{{a}}} {{}} }}{{'


# run: fstring_quotes({'k': 1})
def fstring_quotes(d):
    return f"{d['k']} it's"


# run: fstring_expression([1, 2])
def fstring_expression(a):
    return f'{len(a)} {a[0] + 1} {a[::-1]} {[x for x in a]}'


# run: fstring_conditional(0)
def fstring_conditional(a):
    return f'{"yes" if a else "no"} {a or 5}'


# run: fstring_lambda_and_dict()
def fstring_lambda_and_dict():
    return f'{(lambda: 1)()} { {"a": 1}["a"] }'


# run: fstring_newline('a')
def fstring_newline(a):
    return f'line\n{a}\ttab\\'


# run: fstring_concatenated('a')
def fstring_concatenated(a):
    return 'x' f'{a}' 'y' f'{a}z'


# run: fstring_empty()
def fstring_empty():
    return f'' + f'plain'


# run: fstring_of_constant()
def fstring_of_constant():
    return f'{1} {"s"} {None}'


# run: fstring_triple('a')
def fstring_triple(a):
    return f'''{a}
    "quoted" '{a}'
    '''


# run: fstring_in_call('a')
def fstring_in_call(a):
    return len(f'{a}{a}'), f'{a}'.upper(), f'{f"{a}"!r}'


# run: percent_format('a', 1)
def percent_format(a, b):
    return '%s-%d' % (a, b), '%r' % a, '%(x)s' % {'x': b}


# run: string_concatenation('a')
def string_concatenation(a):
    return 'x' + a + 'y' * 3


# run: constant_folding()
def constant_folding():
    return 24 * 60 * 60, 'ab' * 3, (1, 2) + (3,), -(5), 2 ** 10, 'a' 'b'


# run: deep_nesting(1)
def deep_nesting(a):
    return ((((((a + 1) * 2) - 3) / 4) // 5) % 6)


# run: evaluation_order(print)
def evaluation_order(p):
    x = {}
    x[p('key')] = p('value')
    return x


# run: evaluation_order_targets(print)
def evaluation_order_targets(p):
    a, b = [0], [0]
    (a if p(1) else a)[0], (b if p(2) else b)[0] = p(3), p(4)
    return a, b


# run: comparison_of_lists([1], [1])
def comparison_of_lists(a, b):
    return a == b, a is b, a != [2], (a, b) == (b, a)


# run: ellipsis_body()
def ellipsis_body():
    ...


# run: expression_statements([1])
def expression_statements(a):
    a[0]
    a.append
    a + a
    a.append(2)
    return a


# run: unicode_names(1)
def unicode_names(größe):
    π = größe * 2
    return π


# run: star_in_subscript_tuple((1, 2))
def star_in_subscript_tuple(a):
    return Grid()[(0, *a)]


# run: star_in_return((1, 2))
def star_in_return(a):
    return 0, *a


# run: stored_on_the_way(0, 2), stored_on_the_way(1, 0)
def stored_on_the_way(a, b):
    one = a and (b := a + 1)
    two = (c := a) if a else b
    three = (c := (d := 0)) < (b < c)
    four = 1 == a != (a or b)
    return one, two, three, four, a, b, c, d


# run: never_filled([1, 2])
def never_filled(a):
    return [x for x in a if 0], {x for x in a if x if None}, {x: 1 for x in a if False}, list(x for x in a if 0)


# run: sets_of_constants()
def sets_of_constants():
    return {*(1,), 2}, {*(1,)}, {1, 1.0, True}, {1, 2, 2}, [*(1,)], [1, 2, 3], [*(1, 2), 3], {*(1, 2, 3)}


# run: calls_with_nothing_unpacked(lambda *a, **k: (a, k), [1])
def calls_with_nothing_unpacked(f, g):
    return f(*g, **{}), f(**{}), f(1, **{}), f(*[], **{'a': 1}), f(*g, a=1, **{})


# run: operators_that_nobody_can_compute()
def operators_that_nobody_can_compute():
    def wrong(kind):
        return 4 + "" if kind else "" - 1

    found = []
    for kind in (0, 1):
        try:
            wrong(kind)
        except TypeError as error:
            found.append(str(error))
    return found, "path==%r" % ""
