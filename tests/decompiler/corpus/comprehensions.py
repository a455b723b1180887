"""Comprehensions and generator expressions."""


# run: list_comprehension([1, 2])
def list_comprehension(a):
    return [x + 1 for x in a]


# run: set_comprehension([1, 1, 2])
def set_comprehension(a):
    return {x % 2 for x in a}


# run: dict_comprehension([1, 2])
def dict_comprehension(a):
    return {x: x * x for x in a}


# run: generator_expression([1, 2])
def generator_expression(a):
    return list(x - 1 for x in a)


# run: filtered([1, 2, 3, 4])
def filtered(a):
    return [x for x in a if x % 2]


# run: filtered_twice(range(20))
def filtered_twice(a):
    return [x for x in a if x % 2 if x % 3]


# run: filtered_and(range(20))
def filtered_and(a):
    return [x for x in a if x > 3 and x < 9 or x == 15]


# run: filtered_not(range(5))
def filtered_not(a):
    return [x for x in a if not x % 2]


# run: two_loops([1, 2], 'ab')
def two_loops(a, b):
    return [(x, y) for x in a for y in b]


# run: two_loops_filtered(range(4))
def two_loops_filtered(a):
    return [(x, y) for x in a if x for y in range(x) if y % 2 == 0]


# run: nested(3)
def nested(n):
    return [[x * y for x in range(n)] for y in range(n)]


# run: nested_in_iterable([[1], [2, 3]])
def nested_in_iterable(a):
    return [x for x in [y for z in a for y in z]]


# run: unpacking_target([(1, 2), (3, 4)])
def unpacking_target(a):
    return [x + y for x, y in a]


# run: starred_target([(1, 2, 3)])
def starred_target(a):
    return [rest for first, *rest in a]


# run: nested_target([(1, (2, 3))])
def nested_target(a):
    return {x: (y, z) for x, (y, z) in a}


# run: conditional_element([0, 1])
def conditional_element(a):
    return ['t' if x else 'f' for x in a]


# run: walrus_in_filter([1, 2, 3])
def walrus_in_filter(a):
    return [y for x in a if (y := x * 2) > 2]


# run: walrus_leaks([1, 2, 3])
def walrus_leaks(a):
    r = any((hit := x) > 1 for x in a)
    return r, hit


# run: lambda_in_element(3)
def lambda_in_element(n):
    return [f() for f in [(lambda k=k: k * n) for k in range(n)]]


# run: calls_with_generator([3, 4])
def calls_with_generator(a):
    return all(x > 2 for x in a), any(x > 3 for x in a), dict((x, 1) for x in a)


# run: free_variable_in_generator(2)
def free_variable_in_generator(n):
    g = (x * n for x in range(3))
    n = 10
    return list(g)


# run: dict_of_lists(['ab', 'c'])
def dict_of_lists(a):
    return {s: [c for c in s] for s in a}


# run: attribute_target()
def attribute_target():
    class Box:
        pass

    box = Box()
    return [box.x for box.x in range(3)]


# run: subscript_target()
def subscript_target():
    d = {}
    return [d['k'] for d['k'] in range(3)], d


# run: unused_variable(3)
def unused_variable(n):
    return [0 for _ in range(n)]


# run: comprehension_in_condition([1, 2])
# run: comprehension_in_condition([])
def comprehension_in_condition(a):
    if [x for x in a if x > 1]:
        return 'some'
    return 'none'


# run: chained_comparison_filter(range(10))
def chained_comparison_filter(a):
    return [x for x in a if 2 < x < 7]


# run: generator_is_lazy()
def generator_is_lazy():
    def noisy(n):
        print('at', n)
        return n

    g = (noisy(x) for x in range(3))
    print('made')
    return next(g)


# run: first_iterable_is_eager()
def first_iterable_is_eager():
    try:
        (x for x in None)
    except TypeError as error:
        return str(error)


# run: three_loops(3)
def three_loops(n):
    return {(x, y, z) for x in range(n) for y in range(x) for z in range(y)}


# run: starred_display([1], (2,))
def starred_display(a, b):
    return [*a, 0, *b], (*a, *b), {*a, *b}


# run: merged_dicts({'a': 1}, {'b': 2})
def merged_dicts(a, b):
    return {**a, 'c': 3, **b}


# run: element_tuple([1, 2])
def element_tuple(a):
    return [(x, -x) for x in a]


# run: element_call(['1', '2'])
def element_call(a):
    return [int(x, base=10) for x in a]


# run: sum_of_products([1, 2], [3, 4])
def sum_of_products(a, b):
    return sum(x * y for x, y in zip(a, b))


# run: hides_a_variable_of_the_function([1, 2])
# run: hides_a_variable_of_the_function([])
# run: hides_a_variable_of_the_function([1, "x"])
def hides_a_variable_of_the_function(xs):
    x = "kept"
    try:
        ys = [x + 1 for x in xs]
    except TypeError:
        ys = None
    return x, ys


# run: stored_into_its_own_variable([3, 4])
def stored_into_its_own_variable(x):
    x = [x for x in x]
    return x


# run: two_at_once([(1, 2), (3, 4)])
def two_at_once(pairs):
    firsts, seconds = [a for a, _ in pairs], [b for _, b in pairs]
    return firsts, seconds


# run: results_of_no_use([1, 2], [])
def results_of_no_use(xs, seen):
    [seen.append(x) for x in xs]
    {x: seen.append(y) for x in xs for y in xs}
    return seen


# run: variable_captured_in_one_only([1, 2])
def variable_captured_in_one_only(xs):
    plain = [x * 2 for x in xs]
    functions = [lambda: x for x in xs]
    nested = [[lambda: (x, y) for y in xs] for x in xs]
    return plain, [function() for function in functions], [function() for row in nested for function in row]


# run: global_of_the_same_name([1, 2])
def global_of_the_same_name(xs):
    lengths = [len for len in xs]

    def inner():
        return len(lengths)

    return lengths, len(xs), inner()


# run: in_a_class_body()
def in_a_class_body():
    class Holder:
        values = [1, 2, 3]
        doubled = [value * 2 for value in values if value > 1]
        functions = [lambda: value for value in values]

    return Holder.doubled, [function() for function in Holder.functions]


# run: in_a_finally_body([1, 2], 0)
# run: in_a_finally_body([1, 2], 1)
def in_a_finally_body(xs, divisor):
    x = None
    try:
        if divisor == 1:
            return x
        1 / divisor
    except ZeroDivisionError:
        return [x for x in xs if x > 1]
    finally:
        xs.append({x for x in xs})


# run: over_other_comprehensions([[1], [2, 3]])
def over_other_comprehensions(rows):
    return [x for x in [y for row in rows for y in [z * 2 for z in row]] if [w for w in [x] if w]]
# run: never_adds([1, 2])
def never_adds(z):
    lists = [x for x in z if False], {x: 1 for x in z for y in z if None}
    return lists, list(x for x in (y for y in z if False)), {x for x in z if 0}


# run: tests_without_effect(['a', '', 'b"'])
def tests_without_effect(texts):
    quoted = [f'{text!r}: {short}' for text in texts if (short := text.replace('"', '\\"')) or True]
    either = [str(f'{text}-' if text.replace('"', '\\"') and False else f'{text}+') for text in texts]
    before = [str(f'-{text}' if text.replace('"', '\\"') or True else f'+{text}') for text in texts]
    made = (lambda a, b: f'{a}{b or a}' if a.replace('"', '\\"') or True else None)(*texts[:2])
    return quoted, either, before, made, {text for text in texts if len(text) or True if not text.islower() or True}
