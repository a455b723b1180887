def program(a, b):
    with manager(1) as a:
        while probe(2):
            try:
                if probe(3):
                    match probe(4):
                        case 0:
                            return probe(5)
                        case _:
                            probe(6)
                elif probe(7):
                    try:
                        probe(8)
                    finally:
                        raise Alpha(9)
                elif probe(10):
                    a = probe(11)
                elif probe(12):
                    a = probe(13)
                elif probe(14):
                    a = probe(15)
                else:
                    a = probe(16)
            except Alpha:
                return probe(17)
            except Beta:
                pass
    yield a
    return a, b
