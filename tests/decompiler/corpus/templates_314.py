"""Template strings (3.14 and later)."""


# run: parts(t'{1} text')
def parts(template):
    return template.strings, [(i.value, i.expression, i.conversion, i.format_spec) for i in template.interpolations]


# run: empty()
def empty():
    return parts(t'')


# run: only_text()
def only_text():
    return parts(t'text {{braces}} "and" \'quotes\' \n')


# run: simple('x')
def simple(a):
    return parts(t'a: {a}')


# run: several(1, 2)
def several(a, b):
    return parts(t'{a}{b} and {a + b}, {  a  } {(a)}')


# run: conversions('é')
def conversions(a):
    return parts(t'{a!r} {a!s} {a!a} {a !r}')


# run: specifications(3.14159, 8)
def specifications(a, width):
    return parts(t'{a:.2f} {a:>{width}} {a!r:>{width + 1}.{width}} {a:{width}}')


# run: debugging(1)
def debugging(a):
    return parts(t'{a=} {a = } {a + 1 = !s} {a=:>3}')


# run: quotes({'k': 1})
def quotes(a):
    return parts(t'{a['k']} {a["k"]} {'\n'.join(map(str, a))}')


# run: over_lines([1, 2])
def over_lines(a):
    return parts(t'''{
        a[0]
        + a[1]  # the sum
    } {a}''')


# run: calls('ab')
def calls(a):
    return parts(t'{len(a)} {a.upper()} {[c for c in a]} {(lambda: a)()} { {*a} == set(a) } { {1: a}[1] }')


# run: choices(1, 0)
# run: choices(0, 5)
def choices(a, b):
    return parts(t'{a if a else b} {a and b} {a or b} {a < b < 9} {(c := a)} {c}')


# run: nested('x')
def nested(a):
    return parts(t'{f'{a}!'} {t'{a}'.strings}')


# run: joined('x')
def joined(a):
    return parts(t'{a} ' t'{a!r}' + t'{a} end')


# run: as_argument('x')
def as_argument(a):
    return parts(template=t'{a}') + (list(t'{a} b'),)


# run: in_generator('ab')
def in_generator(a):
    yield from (t'{c}'.values for c in a)
    got = yield t'{(yield 1)}'.strings
    return got
