"""Something for every mutator to change. Only read, never run."""
import a.b as c
import d.e
from . import f, g
from ..h import i as j


@k
@l.m
class N(O, P, q=1, **r):
    """Documented."""
    s: int = 0
    s.t = u()

    def v(self): return super().v()


def w(x, y=1, /, z=2, *aa, bb, cc=3, **dd) -> int:
    """Documented, too."""
    global ee, ff
    gg = lambda hh: hh + ii
    jj, *kk = x(y)
    ll = mm.nn = z.oo()
    pp()[0] = qq()
    ll += rr[1:2] + [3, 4][z]
    ss = tt = -ll * 2.5
    uu().vv = ww().xx = yy()
    ee = f"{x!r:>5}{y} and {z}"
    zz(1, *aa, b=x, c=y, **dd)
    x.a(b())
    x(b())
    c()
    del d.e, e.f
    del ll
    x()
    assert g() < h(1) < 3, "text"
    if not i() and (j() or k()) and (x() and y or z):
        l()
        m()
    elif n():
        o()
    else:
        p()
    if q():
        r()
        return None
    s()
    t = {"a": 1, "b": u(), **v}
    w = x if y() else {1, 2, b"c"}
    with a(), b() as c:
        d()
        e()
    f()
    with g() as h:
        i()
    j()
    return k() == l(), 1 if m(1, n) is None else 2, (t, w), ...


async def x(y):
    nonlocal_ = [z async for z in y() if await z]
    async with a() as b:
        await b.c()
    async for d in e():
        yield d
    return


def y(z):
    def aa():
        nonlocal z
        z = yield from z
        z = z - 1

    for bb, cc in z():
        dd()
        ee()
    else:
        ff()
    for bb in z():
        hh()
        if ii():
            break
        continue
    else:
        jj()
    for bb in z():
        if ii():
            break
    jj()
    while kk():
        ll()
        mm()
    nn()
    pp = [x for x in y for z in x if z if w]
    qq = {x: y for x, y in pp()}
    if (rr := ss()):
        tt()
    try:
        uu()
        vv()
    except (A, B) as e:
        ww(e)
    except C:
        xx()
        raise
    except D:
        raise E(1) from None
    else:
        yy()
    zz()
    try:
        a()
        b()
    finally:
        c()
    d()
    try:
        a()
    except E:
        b()
    return d.e[0]


def z(aa, bb):
    return aa - bb
