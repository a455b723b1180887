"""with statements."""

import contextlib



class Manager:
    def __init__(self, name='m', suppress=False):
        self.name = name
        self.suppress = suppress

    def __enter__(self):
        print('enter', self.name)
        return self.name

    def __exit__(self, kind, value, traceback):
        print('exit', self.name, kind and kind.__name__)
        return self.suppress


# run: simple_with()
def simple_with():
    with Manager():
        print('inside')


# run: with_as()
def with_as():
    with Manager('x') as m:
        print(m)
    return m


# run: with_two()
def with_two():
    with Manager('a') as a, Manager('b') as b:
        return a + b


# run: with_nested()
def with_nested():
    with Manager('a') as a:
        print(a)
        with Manager('b') as b:
            print(b)
        print('between')


# run: with_return(1)
def with_return(x):
    with Manager():
        return x


# run: with_return_call([1])
def with_return_call(a):
    with Manager():
        return len(a)


# run: with_return_nothing(1)
# run: with_return_nothing(0)
def with_return_nothing(x):
    with Manager():
        if x:
            return
        print('zero')
    print('after')


# run: with_raise()
def with_raise():
    with Manager():
        raise ValueError('v')


# run: with_suppress()
def with_suppress():
    with Manager('s', True):
        raise ValueError('v')
    return 'after'


# run: with_suppress_return()
def with_suppress_return():
    with Manager('s', True):
        return 1 / 0


# run: with_tuple_target()
def with_tuple_target():
    from contextlib import nullcontext

    with nullcontext((1, 2)) as (a, b):
        return b, a


# run: with_attribute_target()
def with_attribute_target():
    class Box:
        pass

    with Manager('x') as Box.name:
        pass
    return Box.name


# run: with_subscript_target()
def with_subscript_target():
    d = {}
    with Manager('x') as d['k']:
        pass
    return d


# run: with_starred_target()
def with_starred_target():
    from contextlib import nullcontext

    with nullcontext('abc') as [first, *rest]:
        return first, rest


# run: with_in_loop([1, 2])
def with_in_loop(a):
    for x in a:
        with Manager(x):
            print(x)


# run: with_break([1, 2])
def with_break(a):
    for x in a:
        with Manager(x):
            break
    return x


# run: with_continue([1, 2, 3])
def with_continue(a):
    for x in a:
        with Manager(x):
            if x == 2:
                continue
            print('body', x)


# run: with_loop_inside([1, 2])
def with_loop_inside(a):
    with Manager():
        for x in a:
            if x == 2:
                return 'two'
    return 'none'


# run: with_loop_break_inside([1, 2])
def with_loop_break_inside(a):
    with Manager():
        for x in a:
            if x == 2:
                break
        else:
            print('else')
    return x


# run: with_try_inside(lambda: 1 / 0)
def with_try_inside(f):
    with Manager():
        try:
            f()
        except ZeroDivisionError:
            print('caught')
        finally:
            print('finally')


# run: try_with_inside(lambda: 1 / 0)
def try_with_inside(f):
    try:
        with Manager():
            f()
    except ZeroDivisionError:
        return 'outside'


# run: with_in_finally(lambda: 1)
def with_in_finally(f):
    try:
        return f()
    finally:
        with Manager('f'):
            print('cleaning')


# run: with_in_except(lambda: 1 / 0)
def with_in_except(f):
    try:
        f()
    except ZeroDivisionError as error:
        with Manager('e') as m:
            return m, str(error)


# run: with_if(True)
# run: with_if(False)
def with_if(flag):
    with Manager():
        if flag:
            print('flag')
        else:
            return 'no flag'
    return 'end'


# run: with_conditional_manager(True)
# run: with_conditional_manager(False)
def with_conditional_manager(flag):
    with Manager('a') if flag else Manager('b') as m:
        return m


# run: with_three_suppress()
def with_three_suppress():
    with Manager('a', True), Manager('b'), Manager('c'):
        raise KeyError
    print('done')


# run: with_yield()
def with_yield():
    with Manager() as m:
        yield m
        yield m


# run: with_lock()
def with_lock():
    import threading

    lock = threading.Lock()
    with lock:
        taken = lock.locked()
    return taken, lock.locked()


# run: with_while(3)
def with_while(n):
    while n:
        with Manager(n):
            n -= 1
            if n == 1:
                return 'one'


# run: with_nested_return()
def with_nested_return():
    with Manager('a'):
        with Manager('b'):
            with Manager('c'):
                return 'deep'


# run: with_exit_raises()
def with_exit_raises():
    class Bad(Manager):
        def __exit__(self, *details):
            raise RuntimeError('exit')

    with Bad():
        raise ValueError


# run: with_not_a_manager()
def with_not_a_manager():
    with 1:
        pass


# run: with_pass()
def with_pass():
    with Manager():
        pass


# run: with_closure()
def with_closure():
    with Manager('x') as m:
        def get():
            return m
    return get()


# run: returns_from_one_with(contextlib.nullcontext(0), abs)
# run: returns_from_one_with(contextlib.nullcontext(3), abs)
# run: returns_from_one_with(contextlib.nullcontext(7), abs)
def returns_from_one_with(manager, f):
    with contextlib.suppress(KeyError), manager as value:
        if value > 5:
            return f(-1) if value > 6 else f(-2)
        elif value:
            result = f(value)
            return result
        for item in [value]:
            if item:
                return [item]
        return f(value) or value


# run: continues_out_of_with([1, 2, 3, 4, 5, 6], [1], [0, 1, 0, 1, 0])
# run: continues_out_of_with([1, 2, 3], [], [1, 2, 0])
def continues_out_of_with(items, known, answers):
    for item in items:
        with contextlib.nullcontext():
            if item in known:
                continue
            known.append(item)
            try:
                if not answers.pop():
                    continue
                print(item, answers.pop())
            except IndexError:
                if item > 4:
                    continue
                known.append(-item)
            finally:
                print('finally', item)
    return known


# run: two_returns_in_a_loop([1, 0], 'ab')
# run: two_returns_in_a_loop([1, 0, 1], 'ab')
# run: two_returns_in_a_loop([0, 0], [])
# run: two_returns_in_a_loop([0], ['', 'x'])
def two_returns_in_a_loop(choices, lines):
    lines = iter(lines)
    with Manager():
        while (line := next(lines, None)) is not None:
            if choices and choices.pop():
                try:
                    print(int(line, 16), next(lines))
                except StopIteration:
                    print('stopped')
                    return
            else:
                if not line:
                    print('empty')
                    return
                else:
                    line += '!'
            print(line)
    exec('print(line)', {'line': line})
