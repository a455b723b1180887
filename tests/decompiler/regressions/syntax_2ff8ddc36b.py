def program(a, b, *c, d, **e):
    try:
        assert (a and (a >> a)), a
    except Exception as error:
        h(error)
    try:
        a = y = yield
    except Exception as error:
        h(error)
    try:
        for a in a:
            if a:
                if a:
                    a = yield from a
                elif a:
                    a = yield from [a for (i, *j) in a]
                elif a:
                    a = a
                elif a:
                    a = yield from a
                elif 0:
                    a = (a + a)
                elif a:
                    b = yield from a
                elif g:
                    a = yield from a
                else:
                    a = yield from a
            elif a:
                [*a] = a
            else:
                ((a and a)).p = ((a := (a := 0)) < (y < a))
                a = yield from a
        else:
            a = yield from a
    except Exception as error:
        h(error)
    yield a
