def program(a, b):
    try:
        a = probe(1)
        try:
            with manager(2) as a:
                for a in items(3):
                    a = probe(4)
                    return (((probe(5) and probe(6)) and probe(9)) == ((probe(12) and probe(13)) and probe(16)) != ((probe(19) and probe(20)) and probe(23)))
                else:
                    a = yield 30
                    a = yield 31
        except (Alpha, Beta) as e:
            return probe(32)
            raise Beta(0)
        except Alpha:
            a = probe(33)
            raise Beta(0)
        else:
            pass
        finally:
            b = probe(34)
    finally:
        a = a
        return probe(36)
    yield a
    return a, b
