"""Closures, nested functions, decorators, lambdas, global and nonlocal."""

COUNT = 0


# run: simple_closure(3)(4)
def simple_closure(n):
    def add(x):
        return x + n

    return add


# run: counter()()
# run: (lambda c: (c(), c(), c()))(counter())
def counter():
    count = 0

    def step():
        nonlocal count
        count += 1
        return count

    return step


# run: two_levels(1)(2)(3)
def two_levels(a):
    def middle(b):
        def inner(c):
            return a, b, c

        return inner

    return middle


# run: passes_through(1)()()
def passes_through(a):
    def middle():
        def inner():
            return a

        return inner

    return middle


# run: nonlocal_through(5)
def nonlocal_through(n):
    total = 0

    def outer():
        def inner():
            nonlocal total
            total += n

        inner()
        inner()

    outer()
    return total


# run: cell_argument(3)
def cell_argument(n):
    n += 1

    def get():
        return n

    n += 1
    return get()


# run: cell_and_star(1, 2, k=3)
def cell_and_star(*args, **kwargs):
    return (lambda: (args, kwargs))()


# run: recursive(5)
def recursive(n):
    def fact(k):
        return 1 if k <= 1 else k * fact(k - 1)

    return fact(n)


# run: mutually_recursive(7)
def mutually_recursive(n):
    def even(k):
        if k == 0:
            return True
        return odd(k - 1)

    def odd(k):
        if k == 0:
            return False
        return even(k - 1)

    return even(n)


# run: late_binding()
def late_binding():
    functions = []
    for i in range(3):
        functions.append(lambda: i)
    return [f() for f in functions]


# run: early_binding()
def early_binding():
    return [f() for f in [lambda i=i: i for i in range(3)]]


# run: simple_lambda()(2)
def simple_lambda():
    return lambda x: x * 2


# run: lambda_of_all_kinds()(1, 2, 3, k=4, z=5)
def lambda_of_all_kinds():
    return lambda a, /, b=2, *c, k, m=6, **d: (a, b, c, k, m, d)


# run: nested_lambda()(1)(2)
def nested_lambda():
    return lambda a: lambda b: (a, b)


# run: lambda_conditional()(0)
# run: lambda_conditional()(1)
def lambda_conditional():
    return lambda a: 'yes' if a else 'no'


# run: lambda_boolean()(0, 3)
def lambda_boolean():
    return lambda a, b: a and b or None


# run: lambda_as_key(['bb', 'a'])
def lambda_as_key(a):
    return sorted(a, key=lambda s: len(s))


# run: lambda_yield()
def lambda_yield():
    return list((lambda: (yield 1))())


# run: lambda_nothing()()
def lambda_nothing():
    return lambda: None


# run: decorated_inner(4)
def decorated_inner(n):
    def twice(f):
        return lambda *a: f(*a) * 2

    @twice
    def inner(x):
        return x + n

    return inner(1)


# run: two_decorators()
def two_decorators():
    def tag(name):
        def wrap(f):
            return lambda: f'<{name}>{f()}</{name}>'

        return wrap

    @tag('a')
    @tag('b')
    def inner():
        return 'x'

    return inner()


# run: decorated_with_attribute()
def decorated_with_attribute():
    import functools

    @functools.lru_cache(maxsize=None)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(20)


# run: decorated_with_wraps()
def decorated_with_wraps():
    import functools

    def logged(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            print(f.__name__, args, kwargs)
            return f(*args, **kwargs)

        return wrapper

    @logged
    def add(a, b=1):
        return a + b

    return add(1, b=5), add.__name__


# run: global_write(4)
def global_write(n):
    global COUNT
    COUNT = n
    return COUNT


# run: global_augmented()
def global_augmented():
    global COUNT
    COUNT += 1
    return type(COUNT)


# run: global_delete()
def global_delete():
    global TEMPORARY
    TEMPORARY = 1
    del TEMPORARY
    return 'TEMPORARY' in globals()


# run: global_read_only()
def global_read_only():
    return COUNT is not None


# run: global_loop_variable()
def global_loop_variable():
    global LOOPED
    for LOOPED in range(3):
        pass
    return LOOPED


# run: global_function()
def global_function():
    global made_globally

    def made_globally():
        return 7

    return made_globally()


# run: global_in_inner()
def global_in_inner():
    def setter():
        global SET_INSIDE
        SET_INSIDE = 3

    setter()
    return SET_INSIDE


# run: nonlocal_delete()
def nonlocal_delete():
    x = 1

    def remove():
        nonlocal x
        del x

    remove()
    try:
        return x
    except NameError as error:
        return type(error).__name__


# run: closure_over_loop([1, 2, 3])
def closure_over_loop(a):
    best = None
    for x in a:
        if best is None or x > best:
            best = x

    def get():
        return best, x

    return get()


# run: inner_generator(3)
def inner_generator(n):
    def numbers():
        for i in range(n):
            yield i * n

    return list(numbers())


# run: closure_in_comprehension(3)
def closure_in_comprehension(n):
    return [[i * j * n for j in range(i)] for i in range(n)]


# run: unbound_local(False)
# run: unbound_local(True)
def unbound_local(flag):
    if flag:
        x = 1
    return x


# run: free_before_bound()
def free_before_bound():
    def get():
        return x

    try:
        get()
    except NameError as error:
        print(type(error).__name__)
    x = 1
    return get()


# run: same_name_inside()
def same_name_inside():
    x = 1

    def inner():
        x = 2
        return x

    return inner(), x


# run: function_attributes()
def function_attributes():
    def inner():
        """Inner doc."""

    inner.extra = 1
    return inner.__doc__, inner.extra, inner.__qualname__


# run: lambda_or_other(None), lambda_or_other(abs)
def lambda_or_other(key):
    key = key or (lambda x: -x)
    other = (lambda x: x + key(1)) if key(1) < 0 else key
    return sorted([3, 1, -2], key=key), other(5), (key and (lambda: 1))()


# run: lambdas_in_a_tuple()
def lambdas_in_a_tuple():
    first, second = lambda: 1, lambda value=2: value
    return first(), second()


# run: lambda_with_a_condition(print)
def lambda_with_a_condition(stop):
    calls = [
        lambda: stop(1) if stop else None,
        lambda: None if stop else stop(2),
    ]
    return [call() for call in calls]
