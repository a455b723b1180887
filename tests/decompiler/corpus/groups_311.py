"""except* and what else 3.11 added."""


# run: simple_group(ExceptionGroup('g', [ValueError(1), KeyError(2)]))
# run: simple_group(ExceptionGroup('g', [ValueError(1)]))
# run: simple_group(ValueError(3))
def simple_group(e):
    try:
        raise e
    except* ValueError:
        print('value')


# run: group_named(ExceptionGroup('g', [ValueError(1), KeyError(2)]))
def group_named(e):
    try:
        raise e
    except* ValueError as group:
        print(group.exceptions)
    except* KeyError as group:
        print('key', group.exceptions)


# run: group_several(ExceptionGroup('g', [ValueError(1), OSError(2), TypeError(3)]))
# run: group_several(None)
def group_several(e):
    try:
        if e:
            raise e
    except* (ValueError, TypeError) as group:
        print(len(group.exceptions))
    except* OSError:
        print('os')
    else:
        print('else')
    finally:
        print('finally')
    return 'end'


# run: group_raises(ExceptionGroup('g', [ValueError(1)]))
def group_raises(e):
    try:
        raise e
    except* ValueError:
        raise KeyError('new')


# run: group_reraises(ExceptionGroup('g', [ValueError(1), KeyError(2)]))
def group_reraises(e):
    try:
        raise e
    except* ValueError:
        print('seen')
        raise


# run: group_in_loop([ExceptionGroup('g', [ValueError(1)]), None])
def group_in_loop(a):
    for e in a:
        try:
            if e:
                raise e
            print('fine')
        except* ValueError:
            print('value')


# run: group_nested(ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [ValueError(2), KeyError(3)])]))
def group_nested(e):
    try:
        try:
            raise e
        except* ValueError as values:
            print(values)
    except* KeyError as keys:
        print(keys)


# run: group_if(ExceptionGroup('g', [ValueError(1)]), True)
# run: group_if(ExceptionGroup('g', [ValueError(1)]), False)
def group_if(e, flag):
    try:
        raise e
    except* ValueError:
        if flag:
            print('flag')
    return flag


# run: star_subscript((1, 2))
def star_subscript(a):
    class Grid:
        def __class_getitem__(cls, key):
            return key

    return Grid[*a], Grid[0, *a]


# run: star_annotation()
def star_annotation():
    def inner(*args: *tuple[int, ...]):
        return args

    return inner(1), str(inner.__annotations__['args'])
