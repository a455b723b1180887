def program(a, b):
    while (probe(1)) and probe(2):
        if probe(3) == probe(4) != (probe(5) and (b := probe(6))):
            if probe(13):
                a = probe(14)
            elif probe(15):
                a = probe(16)
            elif probe(17):
                a = probe(18)
            elif probe(19):
                a = probe(20)
            elif probe(21):
                a = probe(22)
            elif probe(23):
                a = probe(24)
            elif probe(25):
                a = probe(26)
            elif probe(27):
                a = probe(28)
            elif probe(29):
                probe(30)
            else:
                a = probe(31)
                a = probe(32) and probe(33)
                a = probe(36)
    yield a
    return a, b
