"""Comprehensions that unpack (3.15 and later), and constants that are new."""


# run: lists([[1], [2, 3], []])
def lists(a):
    return [*x for x in a]


# run: sets(['ab', 'bc'])
def sets(a):
    return sorted({*x for x in a if x})


# run: dicts([{1: 2}, {1: 3, 2: 4}])
def dicts(a):
    return {**d for d in a}


# run: generator([[1], [2, 3]])
def generator(a):
    return list((*x for x in a))


# run: as_argument([[1], 'ab'])
def as_argument(a):
    return tuple(*x for x in a), sum((*(len(y) for y in x) for x in [a]), 5)


# run: nested([[[1], [2]], [[3]]])
def nested(a):
    return [*y for x in a for y in x if y], [[*y for y in x] for x in a]


# run: expressions(['ab', 'c'])
def expressions(a):
    return [*x.upper() for x in a], [*[x, x] for x in a], [*(x if len(x) > 1 else 'no') for x in a]


# run: shadowed('ab')
def shadowed(x):
    return [*x for x in [x, x]], x


# run: in_class(['ab'])
def in_class(a):
    class Local:
        values = [*x for x in ['ab']]

    return Local.values


# run: coroutine([[1], [2]])
async def coroutine(a):
    async def each():
        for x in a:
            yield x

    return [*x async for x in each()], [y async for y in (*x async for x in each())], {**{1: x[0]} async for x in each()}


# run: loop_with_return([[1, 0], [3]])
def loop_with_return(a):
    for x in a:
        for y in x:
            if not y:
                return x, y
            if y > 2:
                break


# run: constants()
def constants():
    return None, '', True, False, -1, [None, -1, ''], (None, -1)
