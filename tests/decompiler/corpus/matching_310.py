"""match statements with every kind of pattern (3.10 and later)."""


class Point:
    __match_args__ = ('x', 'y')

    def __init__(self, x, y):
        self.x = x
        self.y = y


class Colour:
    RED = 'red'
    GREEN = 'green'


# run: literals(0)
# run: literals('a')
# run: literals(-1)
# run: literals(9)
def literals(a):
    match a:
        case 0:
            return 'zero'
        case 'a':
            return 'letter'
        case -1:
            return 'minus'
        case 1.5:
            return 'float'
        case b'x':
            return 'bytes'
        case 2 + 3j:
            return 'complex'
    return 'none'


# run: singletons(None)
# run: singletons(True)
# run: singletons(1)
def singletons(a):
    match a:
        case None:
            return 'none'
        case True:
            return 'true'
        case False:
            return 'false'
        case _:
            return 'other'


# run: wildcard(3)
def wildcard(a):
    match a:
        case 1:
            print('one')
        case _:
            print('other')


# run: capture(3)
def capture(a):
    match a:
        case 1:
            return 'one'
        case x:
            return x


# run: alternatives(2)
# run: alternatives(5)
def alternatives(a):
    match a:
        case 1 | 2 | 3:
            return 'small'
        case 4 | 'x':
            return 'four'
        case _:
            return 'none'


# run: value_pattern('red')
# run: value_pattern('blue')
def value_pattern(a):
    match a:
        case Colour.RED:
            return 1
        case Colour.GREEN:
            return 2
    return 0


# run: sequence([1, 2])
# run: sequence([1])
# run: sequence([])
# run: sequence('ab')
def sequence(a):
    match a:
        case []:
            return 'empty'
        case [x]:
            return 'one', x
        case [x, y]:
            return 'two', x, y
        case _:
            return 'other'


# run: sequence_star([1, 2, 3])
# run: sequence_star([1])
def sequence_star(a):
    match a:
        case [first, second, *rest]:
            return first, second, rest
        case [*items]:
            return items


# run: sequence_star_middle([1, 2, 3, 4])
def sequence_star_middle(a):
    match a:
        case [first, *_, last]:
            return first, last


# run: tuple_pattern((0, 5))
# run: tuple_pattern((5, 0))
# run: tuple_pattern((5, 6))
def tuple_pattern(p):
    match p:
        case (0, 0):
            return 'origin'
        case (0, y):
            return f'y {y}'
        case (x, 0):
            return f'x {x}'
        case (x, y):
            return f'{x} {y}'


# run: nested_sequence([1, [2, [3]]])
def nested_sequence(a):
    match a:
        case [x, [y, [z]]]:
            return x, y, z
        case _:
            return None


# run: mapping({'a': 1})
# run: mapping({'a': 1, 'b': 2})
# run: mapping({})
def mapping(d):
    match d:
        case {'a': a, 'b': b}:
            return a, b
        case {'a': a}:
            return a
        case {}:
            return 'any mapping'


# run: mapping_rest({'a': 1, 'b': 2})
def mapping_rest(d):
    match d:
        case {'a': 1, **rest}:
            return rest


# run: mapping_nested({'k': [1, {'z': 2}]})
def mapping_nested(d):
    match d:
        case {'k': [x, {'z': y}]}:
            return x, y


# run: class_pattern(Point(1, 2))
# run: class_pattern(Point(0, 2))
# run: class_pattern(5)
def class_pattern(p):
    match p:
        case Point(x=0, y=y):
            return 'on axis', y
        case Point(x, y):
            return x, y
        case int():
            return 'integer'


# run: class_mixed(Point(1, 2))
def class_mixed(p):
    match p:
        case Point(1, y=z):
            return z


# run: builtin_class('s')
# run: builtin_class(1)
# run: builtin_class([1])
def builtin_class(a):
    match a:
        case str(s):
            return 'str', s
        case int(n) | float(n):
            return 'number', n
        case list():
            return 'list'


# run: guard(5)
# run: guard(-5)
# run: guard(0)
def guard(a):
    match a:
        case x if x > 0:
            return 'plus'
        case x if x < 0:
            return 'minus'
        case _:
            return 'zero'


# run: guard_boolean([1, 2])
# run: guard_boolean([2, 2])
def guard_boolean(a):
    match a:
        case [x, y] if x < y and x:
            return 'rising'
        case [x, y] if x == y or not y:
            return 'flat'


# run: as_pattern([1, 2])
def as_pattern(a):
    match a:
        case [1, (2 | 3) as x] as whole:
            return x, whole


# run: or_with_binding(('a', 1))
# run: or_with_binding((2, 'b'))
def or_with_binding(a):
    match a:
        case ('a', x) | (x, 'b'):
            return x


# run: subject_tuple(1, 2)
# run: subject_tuple(2, 2)
def subject_tuple(a, b):
    match a, b:
        case 1, x:
            return 'one', x
        case x, y if x == y:
            return 'same'


# run: subject_call('go north')
# run: subject_call('quit')
# run: subject_call('take a b c')
def subject_call(command):
    match command.split():
        case ['quit']:
            return 'bye'
        case ['go', ('north' | 'south') as direction]:
            return direction
        case ['take', *things]:
            return things
        case _:
            return 'what?'


# run: match_in_loop([1, 'x', None, 2])
def match_in_loop(a):
    for x in a:
        match x:
            case None:
                continue
            case str():
                print('str')
            case 2:
                break
            case _:
                print('other')
    return x


# run: match_falls_through(7)
def match_falls_through(a):
    match a:
        case 1:
            print('one')
        case 2:
            print('two')
    print('end')


# run: nested_match(1, 2)
# run: nested_match(1, 3)
# run: nested_match(0, 0)
def nested_match(a, b):
    match a:
        case 1:
            match b:
                case 2:
                    return 'one two'
                case _:
                    return 'one other'
        case _:
            return 'other'


# run: match_with_try([1])
# run: match_with_try([0])
def match_with_try(a):
    match a:
        case [x]:
            try:
                return 1 / x
            except ZeroDivisionError:
                return 'zero'
        case _:
            pass
    return None


# run: evaluate(('add', 1, ('mul', 2, 3)))
# run: evaluate(('neg', 4))
def evaluate(tree):
    match tree:
        case int(n) | float(n):
            return n
        case ('add', left, right):
            return evaluate(left) + evaluate(right)
        case ('mul', left, right):
            return evaluate(left) * evaluate(right)
        case ('neg', value):
            return -evaluate(value)
        case _:
            raise ValueError(tree)


# run: match_in_with([5])
def match_in_with(a):
    from contextlib import nullcontext

    with nullcontext(a) as b:
        match b:
            case [5]:
                return 'five'
    return 'none'


# run: assigned_in_cases(2)
# run: assigned_in_cases(8)
def assigned_in_cases(a):
    match a:
        case 1:
            x = 'one'
        case 2:
            x = 'two'
        case _:
            x = 'many'
    return x


# run: list_of_points([Point(0, 1), Point(2, 2)])
def list_of_points(a):
    match a:
        case [Point(x=0) as first, Point(x=x, y=y)] if x == y:
            return first.y, x


# run: name_or_its_only_element([4])
# run: name_or_its_only_element(5)
def name_or_its_only_element(a):
    match a:
        case [x] | x:
            return x


# run: alternatives_that_take_all({'x': 1})
# run: alternatives_that_take_all({'x': 0, 'y': [7]})
# run: alternatives_that_take_all([0])
# run: alternatives_that_take_all([])
def alternatives_that_take_all(a):
    match a:
        case {'x': x, 'y': ([_] | {'z': _}) as y} | [x, y] | ((x as y)) if x:
            return x, y
        case {'x': x} | [x] | x:
            print('other', x)
    return a
