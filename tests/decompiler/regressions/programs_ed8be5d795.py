def program(a, b):
    a, b = b, ((b := probe(1)) if (probe(5) and probe(6)) else probe(9))
    if probe(11):
        a = probe(12)
    elif probe(13):
        a = a
    else:
        a = probe(15)
    yield a
    return a, b
