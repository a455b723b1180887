"""Builtins that the compiler runs in place when they are called with a generator expression (3.14 and later)."""


# run: every([1, 2])
# run: every([1, 0, 2])
# run: every(3)
def every(a):
    return all(x > 0 for x in a)


# run: some([0, 0])
# run: some([0, 4])
def some(a):
    return any(x for x in a)


# run: as_tuple('ab')
def as_tuple(a):
    return tuple(x * 2 for x in a)


# run: as_list('ab')
def as_list(a):
    return list(x * 2 for x in a)


# run: as_set('ab')
def as_set(a):
    return set(x for x in a if x == 'a')


# run: in_condition([1, 2])
# run: in_condition([1, 'x'])
# run: in_condition([])
def in_condition(a):
    if not all(isinstance(x, int) for x in a):
        return 'mixed'
    if any(x > 1 for x in a) and a:
        return 'large'
    return 'small'


# run: in_loop([[1], [0], [2, 3]])
def in_loop(a):
    found = []
    while a and any(x for x in a[0]):
        found.append(tuple(x for x in a.pop(0)))
    return found, a


# run: replaced()
def replaced():
    def all(values):
        return list(values)

    return all(x for x in 'ab')


# run: in_assert([1])
# run: in_assert([0])
def in_assert(a):
    assert all(x for x in a), tuple(x for x in a)
    return len(a)


# run: as_argument('ba')
def as_argument(a):
    return sorted(tuple(x for x in a)), {all(c for c in x) for x in a}, tuple(tuple(y for y in x) for x in a)


# run: raises([1, 2])
def raises(a):
    try:
        return any(1 // (x - 1) for x in a)
    except ZeroDivisionError:
        return tuple(x for x in a)
    finally:
        a.append(all(x for x in a))


# run: starred('ab')
def starred(a):
    return print(*tuple(x for x in a), sep=str(any(x for x in a)))


# run: coroutine([1])
async def coroutine(a):
    return all(x for x in a) and tuple(x for x in a)


# run: two_tests([1], [])
# run: two_tests([0], [2])
def two_tests(a, b):
    return all(x for x in a) or any(x for x in b) or tuple(x for x in a) if b or any(x for x in a) else None
