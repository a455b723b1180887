"""if, boolean operators, comparisons, conditional expressions, the walrus."""


# run: simple_if(1)
# run: simple_if(0)
def simple_if(a):
    if a:
        print('yes')


# run: if_else(1)
# run: if_else(0)
def if_else(a):
    if a:
        x = 1
    else:
        x = 2
    return x


# run: if_elif_else(0)
# run: if_elif_else(1)
# run: if_elif_else(5)
def if_elif_else(a):
    if a == 0:
        return 'zero'
    elif a == 1:
        return 'one'
    else:
        return 'many'


# run: if_elif_no_else(1)
# run: if_elif_no_else(9)
def if_elif_no_else(a):
    if a == 0:
        print('zero')
    elif a == 1:
        print('one')
    print('end')


# run: early_return(1)
# run: early_return(-1)
def early_return(a):
    if a < 0:
        return 'negative'
    a += 1
    return a


# run: if_not(0)
def if_not(a):
    if not a:
        return 'falsy'
    return 'truthy'


# run: if_is_none(None)
# run: if_is_none(0)
def if_is_none(a):
    if a is None:
        return 'none'
    return 'some'


# run: if_is_not_none(None)
# run: if_is_not_none(0)
def if_is_not_none(a):
    if a is not None:
        print('some')
    else:
        print('none')


# run: nested_if(1, 0)
# run: nested_if(1, 1)
# run: nested_if(0, 1)
def nested_if(a, b):
    if a:
        if b:
            return 'both'
        else:
            return 'a'
    else:
        return 'not a'


# run: dangling_else(1, 0)
# run: dangling_else(0, 0)
def dangling_else(a, b):
    if a:
        if b:
            print('both')
    else:
        print('not a')


# run: if_and(1, 0)
# run: if_and(1, 1)
def if_and(a, b):
    if a and b:
        return 'both'
    return 'not both'


# run: if_or(0, 1)
# run: if_or(0, 0)
def if_or(a, b):
    if a or b:
        return 'one'
    return 'none'


# run: if_and_or(1, 0, 1)
# run: if_and_or(0, 0, 0)
# run: if_and_or(1, 1, 0)
def if_and_or(a, b, c):
    if a and b or c:
        return 'yes'
    return 'no'


# run: if_or_and(1, 0, 1)
# run: if_or_and(1, 0, 0)
def if_or_and(a, b, c):
    if (a or b) and c:
        return 'yes'
    return 'no'


# run: if_not_and(1, 1)
# run: if_not_and(1, 0)
def if_not_and(a, b):
    if not (a and b):
        return 'not both'
    return 'both'


# run: if_mixed_not(0, 1, 1)
# run: if_mixed_not(0, 0, 1)
def if_mixed_not(a, b, c):
    if not a and (b or not c):
        print('yes')
    else:
        print('no')


# run: if_many_terms(1, 2, 3, 4)
# run: if_many_terms(0, 2, 0, 4)
def if_many_terms(a, b, c, d):
    if (a and b) or (c and d) or (a == d and not b):
        print('yes')
    print('end')


# run: and_value(0, 2)
# run: and_value(1, 2)
def and_value(a, b):
    return a and b


# run: or_value(0, 2)
def or_value(a, b):
    return a or b


# run: and_or_value(0, 2, 3)
# run: and_or_value(1, 0, 3)
def and_or_value(a, b, c):
    return a and b or c


# run: or_and_value(0, 2, 3)
def or_and_value(a, b, c):
    return (a or b) and c


# run: long_chain_value(1, 0, 3, '')
def long_chain_value(a, b, c, d):
    x = a and b or c and d
    return x


# run: not_value(1)
def not_value(a):
    return not a


# run: not_and_value(1, 0)
def not_and_value(a, b):
    return not (a and b)


# run: boolean_arguments(0, 1)
def boolean_arguments(a, b):
    return max(a or 5, b and 7)


# run: default_by_or(None)
def default_by_or(a):
    a = a or []
    a.append(1)
    return a


# run: boolean_statement(1)
# run: boolean_statement(0)
def boolean_statement(a):
    a and print('called')


# run: conditional(1)
# run: conditional(0)
def conditional(a):
    return 'yes' if a else 'no'


# run: conditional_nested(5)
# run: conditional_nested(0)
# run: conditional_nested(-5)
def conditional_nested(a):
    return 'plus' if a > 0 else 'minus' if a < 0 else 'zero'


# run: conditional_nested_left(1, 0)
def conditional_nested_left(a, b):
    return ('both' if b else 'a') if a else 'none'


# run: conditional_in_call(1)
def conditional_in_call(a):
    return str(a if a else 'x')


# run: conditional_in_expression(0)
def conditional_in_expression(a):
    return 1 + (2 if a else 3) * 4


# run: conditional_with_and(1, 0)
# run: conditional_with_and(1, 1)
def conditional_with_and(a, b):
    x = 'both' if a and b else 'not'
    return x


# run: conditional_with_or(0, 0)
def conditional_with_or(a, b):
    return 'one' if a or b else 'none'


# run: conditional_in_condition(1, 2, 3)
# run: conditional_in_condition(0, 2, 0)
def conditional_in_condition(a, b, c):
    if (b if a else c):
        return 'yes'
    return 'no'


# run: conditional_in_subscript([1, 2], True)
def conditional_in_subscript(a, flag):
    return a[0 if flag else 1]


# run: conditional_two_arguments(0, 1)
def conditional_two_arguments(a, b):
    return (a if a else -1, b if b else -2)


# run: conditional_as_target_value(3)
def conditional_as_target_value(a):
    x, y = (a, 1) if a > 2 else (0, a)
    return x, y


# run: compare_operators(1, 2)
def compare_operators(a, b):
    return a < b, a <= b, a == b, a != b, a > b, a >= b


# run: membership(1, [1])
def membership(a, b):
    return a in b, a not in b


# run: identity(None, None)
def identity(a, b):
    return a is b, a is not b


# run: chained(2)
# run: chained(20)
def chained(a):
    return 1 < a < 10


# run: chained_three(2, 3)
def chained_three(a, b):
    return 0 < a <= b != 7


# run: chained_calls(print)
def chained_calls(p):
    return p(1) == p(2) == p(3)


# run: chained_in_if(5)
# run: chained_in_if(50)
def chained_in_if(a):
    if 0 <= a < 10:
        return 'digit'
    return 'number'


# run: chained_in_if_else(5)
# run: chained_in_if_else(50)
def chained_in_if_else(a):
    if 0 <= a < 10:
        print('digit')
    else:
        print('number')
    print('end')


# run: chained_and(3, 4)
# run: chained_and(3, 14)
def chained_and(a, b):
    if 0 < a < 10 and 0 < b < 10:
        return 'both'
    return 'no'


# run: chained_not(3)
def chained_not(a):
    return not 0 < a < 10


# run: chained_or(30)
def chained_or(a):
    return 0 < a < 10 or a == 30


# run: chained_conditional(3)
def chained_conditional(a):
    return 'in' if 0 < a < 10 else 'out'


# run: chained_is_in([1], 1)
def chained_is_in(a, b):
    return b in a is not None


# run: in_set_literal('b')
def in_set_literal(a):
    return a in {'a', 'b', 'c'}


# run: in_tuple_literal(2)
def in_tuple_literal(a):
    if a in (1, 2, 3):
        return 'small'
    return 'large'


# run: not_in_list_literal(2)
def not_in_list_literal(a):
    return a not in [1, 2, 3]


# run: walrus_if([1, 2])
# run: walrus_if([])
def walrus_if(a):
    if (n := len(a)) > 1:
        return n
    return -n


# run: walrus_in_call(3)
def walrus_in_call(a):
    return print(b := a * 2), b


# run: walrus_in_boolean(0, 3)
def walrus_in_boolean(a, b):
    if a or (c := b):
        return c


# run: walrus_nested(1)
def walrus_nested(a):
    return (x := (y := a + 1) + 1), x, y


# run: walrus_statement(1)
def walrus_statement(a):
    (b := a)
    return b


# run: if_true()
def if_true():
    if True:
        return 'kept'


# run: if_false()
def if_false():
    if False:
        print('dropped')
    return 'end'


# run: if_debug()
def if_debug():
    if __debug__:
        return 'debug'
    return 'optimised'


# run: long_elif_chain(3)
# run: long_elif_chain(9)
def long_elif_chain(a):
    if a == 1:
        x = 'one'
    elif a == 2:
        x = 'two'
    elif a == 3:
        x = 'three'
    elif a == 4:
        x = 'four'
    else:
        x = 'more'
    return x


# run: returns_in_all(1, 2)
# run: returns_in_all(2, 1)
# run: returns_in_all(1, 1)
def returns_in_all(a, b):
    if a < b:
        return -1
    if a > b:
        return 1
    return 0


# run: pass_branches(1)
def pass_branches(a):
    if a:
        pass
    else:
        print('no')
    return 'end'


# run: joined_tail(1, 1)
# run: joined_tail(0, 1)
# run: joined_tail(1, 0)
def joined_tail(a, b):
    if a:
        print('a')
        if not b:
            print('not b')
            return 1
    else:
        print('not a')
    print('tail')
    return 2


# run: if_with_call_condition('abc')
def if_with_call_condition(s):
    if s.startswith('a') and not s.endswith('z'):
        return s.upper()
    return s


# run: boolean_of_comparisons(1, 2, 3)
def boolean_of_comparisons(a, b, c):
    return a < b and b < c or a == c


# run: compare_with_none_or(None)
def compare_with_none_or(a):
    return a is None or a == 0


# run: elif_with_and(1, 0, 1)
# run: elif_with_and(0, 1, 1)
# run: elif_with_and(0, 0, 0)
def elif_with_and(a, b, c):
    if a and b:
        print('ab')
    elif a and c:
        print('ac')
    elif b and c:
        print('bc')
    else:
        print('none')


# run: lambda_or_value(None)(2)
# run: lambda_or_value(abs)(-2)
def lambda_or_value(convert):
    return convert or (lambda value: value * 2)


# run: lambda_as_a_choice(None) is None
# run: lambda_as_a_choice(abs)()
def lambda_as_a_choice(callback):
    return dict(command=None if callback is None else lambda value=-3: callback(value))['command']


class Fickle:
    """Its truth changes with every test, and each test is seen."""

    def __init__(self, name, *truths):
        self.name, self.truths = name, list(truths)

    def __bool__(self):
        truth = self.truths.pop(0) if self.truths else False
        print(self.name, truth)
        return truth

    def __repr__(self):
        return self.name


# run: tested_twice(Fickle('a', False, True), Fickle('b', True), Fickle('c'))
# run: tested_twice(Fickle('a', True, True), Fickle('b', False, True), Fickle('c'))
def tested_twice(a, b, c):
    return (
        a and b
    ) or c


# run: tested_on_several_lines(*[Fickle(name, False, True) for name in 'abcdef'])
# run: tested_on_several_lines(*[Fickle(name, True, False, True) for name in 'abcdef'])
def tested_on_several_lines(a, b, c, d, e, f):
    return (
        (a and b) or
        (c and d) or
        (e and f)
    )


# run: tested_in_the_same_operator(*[Fickle(name, False, True) for name in 'abc'])
# run: tested_in_the_same_operator(*[Fickle(name, True, False, True) for name in 'abc'])
def tested_in_the_same_operator(a, b, c):
    both = lambda: a and (
        b and
        c) or a
    return (
        (a or b)
        and (c or
             a)
        or (a and
            b and (a or
                   c))
    ), both()


NAMES = ("protocol_is_enabled", "scheme_is_secure", "older_protocol_is_off", "connection_failed")


class Origin:
    """What attributes are looked up, and which truths are tested, is seen."""

    def __init__(self, **attributes):
        self.attributes = attributes

    def __getattr__(self, name):
        return Fickle(name, *self.attributes[name])


# run: tested_once_on_a_long_line(Origin(**dict(zip(NAMES, ([1], [0], [1], [0])))))
# run: tested_once_on_a_long_line(Origin(**dict(zip(NAMES, ([1], [1, 0], [], [1])))))
def tested_once_on_a_long_line(origin):
    return origin.protocol_is_enabled and (origin.scheme_is_secure or origin.older_protocol_is_off) and origin.connection_failed


# run: same_arm_twice((9, 1), 0, 0), same_arm_twice((8, 9), 1, 0), same_arm_twice((8,), 0, 1)
def same_arm_twice(a, b, c):
    y = '' if a >= (9, 0) else -1 if a >= (8, 7) else ''
    z = [b and c if a[0] > 8 else c if b else b and c]
    while abs(b if a else c) > len(z):
        b -= 1
    print(y, a and b or c if b else a and b if c else a and b or c)
    return y if b else z if c else y


# run: or_of_chains_over_lines(3)
# run: or_of_chains_over_lines(20)
# run: or_of_chains_over_lines(40)
def or_of_chains_over_lines(a):
    return a == 3 or \
        (10 <= abs(a) <= 20) or (30 <= abs(a) <= 35)


# run: assert_a_chain([1, 2, 2])
# run: assert_a_chain([2])
def assert_a_chain(data):
    assert data.count(2) == data.count(1) + 1 == 2
    return data


# run: pair_returned_from_try(4)
# run: pair_returned_from_try(3)
# run: pair_returned_from_try('')
def pair_returned_from_try(a):
    try:
        return (
            a % 2,
            [a] if a % 4 else [],
        )
    except TypeError:
        return None


class Ordered:
    """Says what it is compared with, and finds itself as large as that, or not."""

    def __init__(self, name, *answers):
        self.name, self.answers = name, iter(answers)

    def __lt__(self, other):
        print(self.name, '<', callable(other) or other)
        return next(self.answers)

    __gt__ = __ge__ = __le__ = __eq__ = __lt__


# run: chain_of_a_lambda(Ordered('a', 1, 1, 1, 1), 0), chain_of_a_lambda(Ordered('b', 0, 0, 1), 0)
# run: chain_of_a_lambda(Ordered('c'), 1), chain_of_a_lambda(Ordered('d', 1, 0, 0, 1), 0)
def chain_of_a_lambda(x, done):
    if done:
        return 'done'
    elif x < (lambda z: x) >= x:
        return x == (lambda: z) == x, 'elif'
    while x < [y for y in (1, 2)] < x: done += 1
    return done, x == (lambda: done) == x


# run: chain_of_choices(Ordered('a', 1, 1, 1, 1), 0, []), chain_of_choices(Ordered('b', 0, 0, 0), 0, [4])
# run: chain_of_choices(Ordered('c', 1, 0, 1, 0), 3, [4])
def chain_of_choices(x, y, items):
    if not x < (y or items) <= x: return [x < y < (items and items[0])]
    return x <= 2 == (x == (lambda: y) == x), [z for z in items if x < z < (z or y)]


# run: chain_in_finally(Ordered('a', 1, 1, 1), lambda: 4), chain_in_finally(Ordered('b', 0, 0, 1), lambda: 0)
# run: chain_in_finally(Ordered('a', 1, 1, 1), lambda: 1 / 0)
# run: chain_in_finally(Ordered('a', 0, 1, 1), lambda: 1 / 0)
def chain_in_finally(x, f):
    try:
        if f():
            return 'returned'
        elif x < 5 < x:
            print('no')
    except ArithmeticError:
        return 'failed'
    finally:
        print(x < 3 < x or 'otherwise')
