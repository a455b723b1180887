"""while and for, with else, break and continue."""


# run: simple_while(3)
def simple_while(n):
    while n:
        n -= 1
    return n


# run: while_compare(3)
def while_compare(n):
    i = 0
    while i < n:
        print(i)
        i += 1


# run: while_true_break(3)
def while_true_break(n):
    while True:
        if n <= 0:
            break
        n -= 1
    return n


# run: while_true_return(3)
def while_true_return(n):
    while True:
        n += 1
        if n > 10:
            return n


# run: while_else(3)
# run: while_else(7)
def while_else(n):
    while n > 0:
        if n == 5:
            break
        n -= 1
    else:
        return 'exhausted'
    return 'broken'


# run: while_continue(6)
def while_continue(n):
    total = 0
    while n:
        n -= 1
        if n % 2:
            continue
        total += n
    return total


# run: while_and(3, 5)
def while_and(a, b):
    while a and b:
        a -= 1
        b -= 1
    return a, b


# run: while_or(1, 3)
def while_or(a, b):
    while a > 0 or b > 0:
        a -= 1
        b -= 1
    return a, b


# run: while_not([1, 2])
def while_not(a):
    while not len(a) > 4:
        a.append(0)
    return a


# run: while_complex(0, 9, 1)
def while_complex(a, b, c):
    while (a < b and c) or a == 0:
        a += 1
    return a


# run: while_walrus([3, 2, 1])
def while_walrus(a):
    while (x := a.pop()) < 3:
        print(x)
    return x


# run: while_chained(5)
def while_chained(n):
    while 0 < n < 10:
        n += 2
    return n


# run: while_is_none(None)
def while_is_none(x):
    while x is None:
        x = 1
    return x


# run: while_is_not_none([1, [2, None]])
def while_is_not_none(node):
    while node is not None:
        print(node[0])
        node = node[1]


# run: while_a_choice_is_none([5, 6, 0, 0, 7, 0, 3, 0], None)
def while_a_choice_is_none(items, wanted):
    while (items.pop() or wanted) is not None:
        pass
    while (wanted if items.pop() else items) is None:
        pass
    while (found := (items.pop() or wanted)) not in ([0] if items else [found]):
        pass
    return items


# run: do_while(3)
def do_while(n):
    while True:
        print(n)
        n -= 1
        if not n:
            break


# run: loop_and_a_half([1, 2, 0, 3])
def loop_and_a_half(a):
    it = iter(a)
    total = 0
    while True:
        x = next(it)
        if x == 0:
            break
        total += x
    return total


# run: nested_while(3)
def nested_while(n):
    i = 0
    while i < n:
        j = 0
        while j < i:
            print(i, j)
            j += 1
        i += 1


# run: nested_break(5)
def nested_break(n):
    for i in range(n):
        for j in range(n):
            if i * j == 6:
                break
        else:
            continue
        break
    return i, j


# run: simple_for([1, 2])
def simple_for(a):
    for x in a:
        print(x)


# run: for_else([1, 2])
# run: for_else([1, 3])
def for_else(a):
    for x in a:
        if x == 3:
            print('found')
            break
    else:
        print('not found')


# run: for_else_return([1, 2])
# run: for_else_return([1, 3])
def for_else_return(a):
    for x in a:
        if x == 3:
            break
    else:
        return None
    return x


# run: for_continue(range(5))
def for_continue(a):
    for x in a:
        if x == 2:
            continue
        print(x)


# run: for_continue_twice(range(12))
def for_continue_twice(a):
    for x in a:
        if x % 2:
            continue
        if x % 3:
            continue
        print(x)


# run: for_if_else(range(3))
def for_if_else(a):
    for x in a:
        if x:
            print('yes')
        else:
            print('no')


# run: for_if_elif(range(4))
def for_if_elif(a):
    for x in a:
        if x == 0:
            print('zero')
        elif x == 1:
            print('one')
        else:
            print('many')


# run: for_if_last(range(4))
def for_if_last(a):
    for x in a:
        if x % 2:
            print(x)


# run: for_nested_if(range(8))
def for_nested_if(a):
    for x in a:
        if x > 2:
            if x < 6:
                print(x)


# run: for_return([3, 4])
# run: for_return([])
def for_return(a):
    for x in a:
        return x
    return None


# run: for_unpack([(1, 2), (3, 4)])
def for_unpack(a):
    for x, y in a:
        print(x, y)


# run: for_unpack_nested([(1, (2, 3))])
def for_unpack_nested(a):
    for x, (y, z) in a:
        print(x, y, z)


# run: for_starred([(1, 2, 3)])
def for_starred(a):
    for first, *rest in a:
        print(first, rest)


# run: for_attribute_target()
def for_attribute_target():
    class Box:
        pass

    for Box.x in range(2):
        print(Box.x)


# run: for_subscript_target()
def for_subscript_target():
    d = {}
    for d[0] in 'ab':
        pass
    return d


# run: for_tuple_literal()
def for_tuple_literal():
    for x in (1, 2, 3):
        print(x)


# run: for_several()
def for_several():
    for x in 1, 'a', None:
        print(x)


# run: for_enumerate('ab')
def for_enumerate(a):
    for i, x in enumerate(a):
        print(i, x)


# run: triple_nested(3)
def triple_nested(n):
    count = 0
    for i in range(n):
        for j in range(i):
            for k in range(j):
                count += 1
            if count > 5:
                break
    return count


# run: for_and_while(4)
def for_and_while(n):
    for i in range(n):
        while i > 1:
            i -= 1
            if i == 2:
                continue
            print(i)


# run: break_after_work([1, 2, 3])
def break_after_work(a):
    for x in a:
        if x == 2:
            print('two')
            break
        print('other')
    print('after')


# run: return_in_nested_loops([[1, 2], [3]])
def return_in_nested_loops(a):
    for row in a:
        for x in row:
            if x == 3:
                return row
    return None


# run: search_matrix([[1, 2], [3, 4]], 3)
# run: search_matrix([[1]], 9)
def search_matrix(m, wanted):
    for i, row in enumerate(m):
        for j, x in enumerate(row):
            if x == wanted:
                return i, j
    else:
        return None


# run: infinite_with_two_breaks([5, -1])
# run: infinite_with_two_breaks([0])
def infinite_with_two_breaks(a):
    i = 0
    while True:
        if a[i] < 0:
            break
        if a[i] == 0:
            break
        i += 1
    return i


# run: break_in_else([1, 2, 3])
def break_in_else(a):
    for x in a:
        if x < 2:
            print('small')
        else:
            break
    return x


# run: while_pass([0, 0, 1])
def while_pass(a):
    while not a.pop():
        pass
    return a


# run: bubble_sort([3, 1, 2])
def bubble_sort(a):
    swapped = True
    while swapped:
        swapped = False
        for i in range(len(a) - 1):
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]
                swapped = True
    return a


# run: binary_search([1, 3, 5, 7], 5)
# run: binary_search([1, 3, 5, 7], 4)
def binary_search(a, x):
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if a[middle] < x:
            low = middle + 1
        elif a[middle] > x:
            high = middle
        else:
            return middle
    return -1


# run: collatz(6)
def collatz(n):
    steps = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps.append(n)
    return steps


# run: gcd(12, 18)
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


# run: else_after_while_true([2, 1])
def else_after_while_true(a):
    for x in a:
        while True:
            if x > 1:
                break
            return 'one'
    else:
        print('else')
    return 'end'


# run: continue_in_nested_condition(range(10))
def continue_in_nested_condition(a):
    for x in a:
        if x > 3:
            if x == 5:
                continue
            print('big', x)
        print('any', x)


# run: loop_variable_after(3)
# run: loop_variable_after(0)
def loop_variable_after(n):
    for i in range(n):
        pass
    return i


# run: delete_in_loop({1: 'a', 2: 'b'})
def delete_in_loop(d):
    for k in list(d):
        del d[k]
    return d


# The end of a clause that has a name, and a jump from it, are not the same to 3.8: outside of functions that shows.
for _text in ('1', 'x', ''):
    try:
        int(_text)
    except ValueError as _error:
        continue

for _text in ('1', 'x', ''):
    try:
        int(_text)
    except TypeError as _error:
        pass
    except ValueError as _error:
        if _text:
            continue
        print(_text)
