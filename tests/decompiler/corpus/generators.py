"""Generators, yield as an expression, delegation."""


# run: simple(3)
def simple(n):
    for i in range(n):
        yield i


# run: yields_nothing()
def yields_nothing():
    yield


# run: never_yields()
def never_yields():
    return
    yield


# run: returns_value()
def returns_value():
    yield 1
    return 2


# run: talk(echo(), [None, 1, 2])
def echo():
    received = None
    while True:
        received = yield received


# run: talk(yield_in_expression(), [None, 1, 2])
def yield_in_expression():
    x = (yield 1) + (yield 2)
    print(x)


# run: talk(yield_in_call(), [None, 'a', 'b'])
def yield_in_call():
    print((yield 'x'), (yield 'y'))


# run: talk(yield_in_condition(), [None, 0])
# run: talk(yield_in_condition(), [None, 1])
def yield_in_condition():
    if (yield 'ask'):
        yield 'yes'
    else:
        yield 'no'


# run: delegates([1, 2])
def delegates(a):
    yield from a


# run: delegate_result()
def delegate_result():
    def inner():
        yield 1
        return 'done'

    x = yield from inner()
    yield x


# run: delegate_return()
def delegate_return():
    return (yield from [1, 2])


# run: flatten([1, [2, [3]]])
def flatten(a):
    for x in a:
        if isinstance(x, list):
            yield from flatten(x)
        else:
            yield x


# run: yield_in_try()
def yield_in_try():
    try:
        yield 1
        yield 2
    finally:
        print('closed')


# run: close_early(yield_with_finally())
def yield_with_finally():
    try:
        while True:
            yield 1
    finally:
        print('cleaned')


# run: throw_into(yield_catches(), ValueError('v'))
def yield_catches():
    while True:
        try:
            yield 'ready'
        except ValueError as error:
            yield f'caught {error}'
            return


# run: throw_into(yield_catches_exit(), KeyError('k'))
def yield_catches_exit():
    try:
        yield 0
    except GeneratorExit:
        print('exit')
        raise
    except KeyError:
        yield 'key'


# run: fibonacci(8)
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        yield a
        a, b = b, a + b


# run: primes(20)
def primes(n):
    sieve = {}
    for q in range(2, n):
        p = sieve.pop(q, None)
        if p:
            x = p + q
            while x in sieve:
                x += p
            sieve[x] = p
        else:
            sieve[q * q] = q
            yield q


# run: windows([1, 2, 3, 4], 2)
def windows(a, n):
    it = iter(a)
    window = []
    for x in it:
        window.append(x)
        if len(window) < n:
            continue
        yield tuple(window)
        window.pop(0)


# run: yield_tuple()
def yield_tuple():
    yield 1, 2
    yield (3,)


# run: yield_in_with()
def yield_in_with():
    import io

    with io.StringIO('a\nb') as f:
        for line in f:
            yield line.strip()


# run: yield_in_loop_else([1, 2])
# run: yield_in_loop_else([1, 5])
def yield_in_loop_else(a):
    for x in a:
        if x > 3:
            break
        yield x
    else:
        yield 'all'


# run: talk(running_mean(), [None, 10, 20])
def running_mean():
    total = count = 0
    mean = None
    while True:
        total += yield mean
        count += 1
        mean = total / count


# run: yield_in_fstring_and_list()
def yield_in_fstring_and_list():
    x = [(yield 1), (yield 2)]
    print(f'{x} {(yield 3)}')


# run: yield_augmented()
def yield_augmented():
    d = {'a': 0}
    d['a'] += (yield 1) or 5
    yield d


# run: from_context_manager()
def from_context_manager():
    from contextlib import contextmanager

    @contextmanager
    def manager(name):
        print('enter', name)
        try:
            yield name.upper()
        except ValueError:
            print('suppressed')
        finally:
            print('exit', name)

    with manager('a') as a:
        print(a)
        raise ValueError
    yield a


# run: list(values_of_nested_tests([(), (0, 0), (1, 0), (0, 2)], 3))
def values_of_nested_tests(items, found):
    for item in items:
        yield (item and (item[0] or item[1]) and found) or 'nothing'
        found = not (item and (found or item) or found)
    yield found
