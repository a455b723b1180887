"""Assignments, unpacking, del, imports, annotations, and small whole functions."""


# run: chained_assignment(1)
def chained_assignment(a):
    x = y = z = a
    return x, y, z


# run: chained_mixed([0])
def chained_mixed(a):
    x = a[0] = y = 5
    return x, y, a


# run: tuple_assignment((1, 2))
def tuple_assignment(a):
    x, y = a
    return y, x


# run: swap(1, 2)
def swap(a, b):
    a, b = b, a
    return a, b


# run: swap_three(1, 2, 3)
def swap_three(a, b, c):
    a, b, c = c, a, b
    return a, b, c


# run: swap_four(1, 2, 3, 4)
def swap_four(a, b, c, d):
    a, b, c, d = d, c, b, a
    return a, b, c, d


# run: swap_items([1, 2])
def swap_items(a):
    a[0], a[1] = a[1], a[0]
    return a


# run: list_target([1, 2])
def list_target(a):
    [x, y] = a
    return x + y


# run: starred_first([1, 2, 3])
def starred_first(a):
    *x, y = a
    return x, y


# run: starred_middle([1, 2, 3, 4])
def starred_middle(a):
    x, *y, z = a
    return x, y, z


# run: starred_only('ab')
def starred_only(a):
    (*x,) = a
    return x


# run: nested_unpack([1, (2, [3, 4])])
def nested_unpack(a):
    x, (y, [z, w]) = a
    return x, y, z, w


# run: nested_starred([1, [2, 3, 4]])
def nested_starred(a):
    x, (y, *z) = a
    return x, y, z


# run: unpack_wrong([1, 2, 3])
def unpack_wrong(a):
    x, y = a
    return x


# run: unpack_to_attributes()
def unpack_to_attributes():
    class Box:
        pass

    Box.a, Box.b = 1, 2
    return Box.a, Box.b


# run: unpack_and_chain((1, 2))
def unpack_and_chain(a):
    b = x, y = a
    return b, x, y


# run: discard_tuple(print)
def discard_tuple(p):
    _, _ = p(1), p(2)


# run: one_element_target([5])
def one_element_target(a):
    (x,) = a
    return x


# run: empty_target([])
def empty_target(a):
    () = a
    [] = a
    return 'ok'


# run: annotated_local(1)
def annotated_local(a):
    x: int = a
    y: 'list[int]'
    return x


# run: annotated_attribute()
def annotated_attribute():
    class Box:
        pass

    Box.x: int = 3
    return Box.x


# run: delete_name()
def delete_name():
    x = 1
    del x
    return 'x' in locals()


# run: delete_several()
def delete_several():
    a = b = c = 1
    del a, (b, c)
    return sorted(locals())


# run: delete_mixed({'a': 1}, [1, 2])
def delete_mixed(d, a):
    del d['a'], a[0]
    return d, a


# run: delete_argument(1)
def delete_argument(a):
    del a
    a = 2
    return a


# run: use_after_delete(1)
def use_after_delete(a):
    del a
    return a


# run: import_plain()
def import_plain():
    import math

    return math.floor(1.5)


# run: import_dotted()
def import_dotted():
    import os.path

    return os.path.basename('a/b')


# run: import_dotted_as()
def import_dotted_as():
    import os.path as p

    return p.basename('a/b')


# run: import_triple_as()
def import_triple_as():
    import xml.etree.ElementTree as tree

    return tree.fromstring('<a/>').tag


# run: import_as()
def import_as():
    import json as j

    return j.dumps([1])


# run: import_from()
def import_from():
    from math import ceil, floor

    return ceil(1.5), floor(1.5)


# run: import_from_as()
def import_from_as():
    from os.path import basename as b, dirname as d

    return b('x/y'), d('x/y')


# run: import_several()
def import_several():
    import json, math

    return json.__name__, math.__name__


# run: import_relative()
def import_relative():
    from . import nothing

    return nothing


# run: import_relative_two()
def import_relative_two():
    from ..there import nothing

    return nothing


# run: import_missing_name()
def import_missing_name():
    from math import no_such_name

    return no_such_name


# run: pass_body()
def pass_body():
    pass


# run: return_none()
def return_none():
    return None


# run: bare_return(1)
def bare_return(a):
    print(a)
    return


# run: several_statements(1)
def several_statements(a):
    b = a + 1
    c = b * 2
    d = [a, b, c]
    d.append(4)
    print(d)
    return sum(d)


# run: code_after_return(1)
def code_after_return(a):
    return a
    print('never')


# run: string_statement()
def string_statement():
    x = 1
    'not a docstring'
    return x


# run: uses_locals(1)
def uses_locals(a):
    b = 2
    return sorted(locals().items())


# run: uses_exec()
def uses_exec():
    namespace = {}
    exec('x = 1', namespace)
    return namespace['x']


# run: word_count('a b a')
def word_count(text):
    counts = {}
    for word in text.split():
        if word in counts:
            counts[word] += 1
        else:
            counts[word] = 1
    return counts


# run: flatten([[1, [2]], [3]])
def flatten(a):
    result = []
    stack = [a]
    while stack:
        top = stack.pop()
        for x in top:
            if isinstance(x, list):
                stack.append(x)
            else:
                result.append(x)
    return result


# run: parse_number('12')
# run: parse_number('1.5')
# run: parse_number('x')
def parse_number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


# run: tokenise('a1 bb 22')
def tokenise(text):
    tokens = []
    i = 0
    while i < len(text):
        c = text[i]
        if c.isspace():
            i += 1
            continue
        j = i
        if c.isdigit():
            while j < len(text) and text[j].isdigit():
                j += 1
            tokens.append(('number', int(text[i:j])))
        elif c.isalpha():
            while j < len(text) and text[j].isalnum():
                j += 1
            tokens.append(('name', text[i:j]))
        else:
            raise SyntaxError(f'unexpected {c!r} at {i}')
        i = j
    return tokens


# run: transpose([[1, 2], [3, 4]])
def transpose(m):
    return [[row[i] for row in m] for i in range(len(m[0]))]


# run: quicksort([3, 1, 2])
def quicksort(a):
    if len(a) <= 1:
        return a
    pivot, *rest = a
    left = [x for x in rest if x < pivot]
    right = [x for x in rest if x >= pivot]
    return quicksort(left) + [pivot] + quicksort(right)


# run: permutations([1, 2, 3])
def permutations(a):
    if not a:
        return [[]]
    return [[x, *rest] for i, x in enumerate(a) for rest in permutations(a[:i] + a[i + 1:])]


# run: memoised(10)
def memoised(n):
    cache = {}

    def fib(k):
        if k in cache:
            return cache[k]
        if k < 2:
            return k
        cache[k] = result = fib(k - 1) + fib(k - 2)
        return result

    return fib(n)


# run: state_machine('aabx')
def state_machine(text):
    state = 'start'
    for c in text:
        if state == 'start':
            if c == 'a':
                state = 'a'
            else:
                return 'bad start'
        elif state == 'a':
            if c == 'b':
                state = 'b'
            elif c != 'a':
                return f'unexpected {c}'
        else:
            break
    else:
        return 'exhausted'
    return state


# run: same_name_twice((1, 2, 3, 4))
def same_name_twice(values):
    a, _, _, b = values
    return a, b, _


# run: value_chosen_in_the_last_call([], True)
# run: value_chosen_in_the_last_call([], False)
def value_chosen_in_the_last_call(seen, flag):
    seen.append("first" if flag else "second")
    seen.append("yes" if flag else "no")


# run: value_chosen_in_what_is_returned(3)
# run: value_chosen_in_what_is_returned(0)
def value_chosen_in_what_is_returned(x):
    return abs(-x if x else x + 1)


# run: raised_by_the_way([1, 0], 2)
# run: raised_by_the_way([1], 2)
# run: raised_by_the_way([], 0)
def raised_by_the_way(xs, limit):
    with open("/dev/null") as file:
        for x in xs:
            if isinstance(x, bool):
                return file.name
            if not x / limit:
                raise ValueError(x)
    raise KeyError(len(xs) if limit else None)


# run: same_variable_several_times([(1, 2, 3, 4)])
def same_variable_several_times(a):
    _, _, _, last = a[0]
    for _, _, x, _ in a:
        print(x, _)
    return last, _, sum(x for _, _, _, x in a)
