"""Of several texts that compile to the same operations, the author's is restored from lines and columns."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from types import CodeType
from typing import Dict, List

import pytest
from author_text import CLASSES, author_text, differences
from same_source import Function

from depyf.decompiler import decompile_code
from depyf.decompiler.pipeline.attempts import Attempts
from depyf.decompiler.pipeline.forms import Form
from depyf.decompiler.result import Verdict

HAS_COLUMNS = sys.version_info >= (3, 11)
COPIES_RETURNS = sys.version_info >= (3, 10)

BY_LINES = """
def continues(items, a, b, c):
    for item in items:
        if a(item):
            continue
        b(item)
        c(item)
    return items

def continues_behind(items, a, b, c):
    for item in items:
        if a(item):
            b(item)
            continue
        c(item)
        b(item)

def does_not_continue(items, a, b, c):
    for item in items:
        if not a(item):
            b(item)
            c(item)

def returns_out_of_two_managers_in_a_third(a, b, c):
    with a:
        try:
            a()
        except E:
            with b() as x, c as y:
                return a(x, y)
        finally:
            b()
    return c

def returns_behind_clauses_in_a_try(a, b, c):
    try:
        try:
            a()
        except E as error:
            b(error)
        return GLOBAL
    except F:
        c()
        raise

def returns_behind_clauses_in_a_clause(a, b, c):
    try:
        a()
    except E:
        try:
            b()
        except F:
            with c() as d:
                b(d)
        return GLOBAL

def returns_out_of_a_manager_in_loops(items, a, b, c):
    for item in items:
        for other in item:
            try:
                with a(item) as d:
                    try:
                        b(d)
                    except F:
                        return GLOBAL, a
                    if not other:
                        return GLOBAL, b
                c(item)
            except E:
                return a(other)

def returns_out_of_a_manager_in_a_clause_in_a_loop(items, a, b, c):
    for item in items:
        try:
            a(item)
        except E:
            with b as d:
                if a:
                    return c(d)
                if item:
                    return c(d)

def returns_through_finally_in_loops(items, a, b, c):
    for item in items:
        for other in item:
            try:
                with other as d:
                    try:
                        if a(d):
                            return a(item)
                        if b(d):
                            return a(item)
                    except E:
                        b()
            finally:
                c()

def negated_operands(a, b, c, d):
    if a or not b or not c or not d:
        a()
    while a or not b or not c or not d:
        b()
    return not (a and not b) or c

def tests_without_effect_in_comprehensions(items, a, b, c):
    a([f'{item} {c}' for item in items if b(item, '\\\\') or True if c])
    b({item for item in items if b(item) or True for other in item if other or True})
    c(lambda d: f'{d} {c}' if b(d, '\\\\') or True else None, lambda d: a(d or b) if c else d)
    return {item: b for item in items if a(item) is None or True}

def breaks_out_of_two_managers(items, a, b, c):
    for item in items:
        with a as x, b:
            if c(item):
                break
            a(item)
    else:
        b(c)
    return items

def breaks_out_of_a_manager_and_finally(items, a, b, c):
    for item in items:
        with a as x:
            try:
                if c(item):
                    continue
                if b(item):
                    break
            finally:
                x(item)
            c(item)
    else:
        b(c)
    return items

def asserts_last_in_loops(items, a, b, c):
    for item in items:
        assert a
        assert item not in a
    while a:
        assert b(a), 'text'
    for item in items:
        if b:
            assert item not in b
        else:
            assert item.a, c
    for item in items:
        assert item

def percent_with_a_tuple(a, b):
    raise TypeError('%s must be %r, not 100%%' % (a.name, b))

def operators_of_negated_tests(items, a, b, c):
    assert not a or b is not c
    for item in items:
        if not item or item in a:
            continue
        b(item)
    while not a[b] or c[b] not in items or a > c:
        b -= 1
    for item in items:
        if a in item and b in item or a is b:
            c(item)

def else_in_a_loop(items, a, b, c):
    for item in items:
        if a(item):
            b(item)
        else:
            c(item)
            b(item)

def nested(a, b, c):
    if a:
        if b:
            c()

def not_nested(a, b, c):
    if (a and
            b):
        c()

def returns_nothing(a, b):
    if a:
        b()
        return
    a.c()
    b.d()

def continues_in_nested(items, a, b):
    for item in items:
        if a(item):
            if b(item):
                continue
            item.c()

def asserts_on_one_line(a, b):
    if a: assert a.c, b; assert b.c, a
    return a

def breaks_in_a_clause_at_the_start(a, b):
    while True:
        try:
            c = a()
        except ValueError:
            break
        b(c)
    b(a)

def breaks_in_a_clause_behind_a_call(a, b):
    while True:
        a.b()
        try:
            c = a()
        except ValueError as e:
            b(e)
            break
        b(c)
    b(a)

def returns_behind_a_try_in_a_clause(a, b):
    try:
        a()
    except KeyError:
        try:
            return b.a()
        except ValueError:
            pass
        finally:
            a.b()
        return b.c()

def raises_in_a_branch(items, a, b, c):
    for item in items:
        if a(item):
            if b(item):
                continue
            raise c(item)
        if b(a):
            c(b)

def a_loop_in_a_try_in_a_loop(a, b, c):
    while True:
        try:
            while a(b):
                c()
        finally:
            b()

def a_loop_with_a_test_in_a_try_in_a_loop(a, b, c):
    while True:
        try:
            if a(b):
                break
            c(b)
        finally:
            b()
    return c

def an_assertion_in_a_try_in_a_loop(a, b, c):
    while True:
        try:
            assert a and b, c
        finally:
            b()

def a_loop_test_that_its_body_on_its_line_begins_with(a, b):
    while a(b or 1): b = b or 1

def a_loop_on_a_line_that_ends_in_its_test(a, b, c):
    a()
    while a(b or 1): b = b or 2; c = 1

def a_test_of_several_before_a_body_of_several(a, b, c):
    while (a or b) is not None:
        c(a or b)
    while (a and b) > 3:
        c(a or b)
    while c(a or b):
        c(a if b else c)
"""
if sys.version_info < (3, 14):  # from then on a test has no copy, and ``while a: if not b: break`` is the same
    BY_LINES += """
def and_in_the_test_of_a_loop_in_a_loop(a, b, c):
    for item in a:
        b = item
        while b and c:
            a(c)

def and_in_the_test_of_an_empty_loop_in_a_loop(a, b, c):
    for item in a:
        b = item
        while not (b or c) or a.b: pass
        while b and c: pass

def break_in_a_loop_in_a_loop(a, b, c):
    for item in a:
        while b:
            if not c:
                break
"""

BY_COLUMNS = """
def breaks_twice_to_a_return(a, b, c):
    while True:
        if a > b:
            c.append('limit')
            break
        a += 1
        if c(a):
            break
        b += 1
    return a, b

def breaks_out_of_a_clause_to_a_return(a, b, c):
    while True:
        if a > b:
            c.append('limit')
            break
        try:
            b = c[a]
        except IndexError:
            break
        a += 1
    return a, b

def asserts_of_several_tests_in_an_else(a, b, c, x):
    for c in x:
        if c:
            a()
        else:
            assert a or b
    while x():
        if c:
            a()
        else:
            assert a and b or c, 'a'
    for c in x:
        if c:
            a()
        elif not a:
            assert b
    for c in x:
        if c:
            if not a:
                assert b, c

def leaves_three_statements(items, a, b, c):
    while a(items):
        with b() as x:
            try:
                with c() as y:
                    if x:
                        continue
                    if y:
                        break
                    if a:
                        return x
                    a(y)
            finally:
                a(x)
    else:
        b(items)
    return items

def returns_out_of_an_endless_loop_in_with(c, x):
    with c:
        while True:
            if x():
                return
            c()

def returns_out_of_a_loop_of_one_test_in_with(c, x):
    with c:
        while True:
            if x:
                return

def returns_out_of_a_loop_in_with(c, x):
    with c:
        for y in x:
            if y:
                return
            x()

def returns_beside_a_break_in_with(c, x):
    with c:
        for y in x:
            if y:
                break
            y()
        else:
            return True
        return False

def returns_none_in_with(c, x):
    with c:
        if x:
            return None
        if c:
            return None
        for y in x:
            if y:
                return
        x()

def equal_returns_in_with(c, x):
    with c:
        x = c.get(x)
        if x is None:
            return False
        if c() < x:
            return True
        del c[x]
        return False

def passes_in_front_of_an_else_in_a_loop(a, b, c):
    for d in c:
        if a.get(d):
            b(a)
        elif d in ('a', 'b'):
            pass
        elif d == 'f' and a.keys():
            pass
        else:
            raise E(a, d)

def continues_in_an_else_in_front_of_more(a, b):
    for k, v in b:
        if k.startswith('on') and k.ends():
            e = k[3:-7]
        else:
            continue
        if not e or e == '_':
            raise E(k)
        a[e] = v

def operands_in_parentheses(a, b, c):
    x = a and (b and (c or a))
    x = a and b and (c and a)
    x = a or (b or c())
    x = a is None or (b is None or c)
    x = a if a is None and (b is not None and 's' not in c) else b
    if a and (not b and c):
        return x
    assert a or (b or c)
    if a and (b == c) and c:
        x()
    if (a == b) and (b == c) and (c == a):
        x()
    if not a and b and (c + a):
        x()
    return a.x and (b.x and c.x)

def returns_behind_negated_chains(a, b, c):
    try:
        if not a(b) < a(c) < a(a):
            return [b]
        if not a(b) < a(c) < a(a):
            return b
    except ValueError:
        return [b]
    return []

def tests_that_begin_with_named_values(a, b, c):
    if (d := a(b)) in ('a', 'b'):
        return d
    elif d:
        return
    elif e := a(b, d=3):
        return e
    elif (e := a()) is None:
        return b
    elif not (e := a()):
        return c
    elif (e := a()) and e.b:
        return d
    elif (e := a()).b():
        return e
    elif (e := a())[1] < 3:
        return a

def tests_of_named_values_in_others(a, b, c):
    for c in a:
        if a:
            if b := a():
                b()
        if a:
            if (b := a()):
                b()
        if b:
            if (b := a()) == 3:
                b()
        if not c:
            if (b := a.c(':')) and len(b) > 7 and b[-1].c():
                a()

def returns_behind_an_else_that_raises(a, b, c):
    if a:
        if a is not None:
            b = c()
            del c[a]
        else:
            a()
            raise E
    else:
        raise E(a)
    return b, a

def returns_behind_an_endless_loop(a, b):
    while True:
        if a.end():
            b('End')
            break
        elif a.parse():
            continue
        else:
            a.r()
    return a.create()

def endless_loops_in_branches_and_behind_others(a, b):
    if a:
        while True:
            b()
            if b:
                break
    for a in b:
        if b:
            while True:
                a = b()
                if a:
                    break
        while 1:
            b = a()
            if b:
                break
    try:
        while True:
            a = b()
            if a:
                break
    except E:
        while True:
            b = a()
            if b:
                break
        b()
    if a:
        pass
    while True:
        b = a()
        if b:
            break
    a()

def an_endless_loop_of_one_test(a, b):
    for a in b:
        if a:
            while True:
                if b():
                    break
        else:
            while not a:
                pass
    while True:
        if not a():
            break
    while a:
        pass
    b()

def failures_last_in_loops(items, a):
    for item in items:
        if item:
            continue
        assert 0, a
    for item in items:
        if not item:
            assert False
    while a():
        if a.b:
            continue
        assert False, a

def a_loop_that_starts_with_a_try_behind_a_try(a, b, c):
    try:
        a()
    except ValueError:
        return
    try:
        while True:
            try:
                c = a()
            except KeyError:
                c = b()
            if c:
                c.a()
                continue
            if a or b:
                if b:
                    c.b = 1
                b(None)
                break
            del c
    except KeyError:
        b()
    finally:
        a.c()

def a_finally_at_the_end_of_a_try_in_a_loop(a, b, c):
    b = c()
    while True:
        try:
            e = a[b]
            if e < a:
                c(e)
                while a == e:
                    b += 1
            elif e > a:
                b(e)
            else:
                b += 1
                try:
                    while a == e:
                        c()
                finally:
                    c += 1
                    while b:
                        c()
        except IndexError:
            c(a)
            break
    return b, c

def returns_in_the_else_of_a_loop_in_finally(a, b, c):
    for d in a:
        try:
            a()
        finally:
            for item in a:
                if item:
                    break
            else:
                return b(c)
    return b

def raises_in_the_else_of_a_loop_in_finally(a, b, c):
    try:
        a()
    finally:
        while a:
            if b(c):
                break
            c()
        else:
            raise b
    return c

def a_chain_in_a_clause_of_a_try_with_finally(a, b, c):
    try:
        a()
    except ValueError:
        if a < b() < c:
            c()
    else:
        b()
    finally:
        c()
    return b

def a_loop_of_a_chain_in_a_clause(a, b, c):
    try:
        a()
    except ValueError as error:
        while (d := a()) < b() <= c:
            b(error)
    try:
        b(a)
    except:
        while a() < b() <= c:
            if a:
                return 3
    b()

def else_that_leaves(a, b):
    if a:
        return b
    else:
        a.c()
        return a

def no_else(a, b):
    if a:
        return b
    a.c()
    return a

def elif_that_leaves(a, b):
    if a > 1:
        return b
    elif b > 1:
        return a
    a.c()
    return a

def if_behind(a, b):
    if a > 1:
        return b
    if b > 1:
        return a
    else:
        a.c()
    return a

def long_chain(a, b):
    if a == 0:
        return 0
    elif a == 1:
        return 1
    elif a == 2:
        b = 2
    else:
        b = 3
    return b

def else_of_a_chain(a, b):
    if a == 0:
        b = 1
    elif a == 1:
        raise b
    elif a == 2:
        raise a
    b.c()

def else_in_else(a, b):
    if a:
        return 1
    else:
        if b:
            return 2
        a.c()
        return 3

def continue_and_else(items, a, b):
    for item in items:
        if a(item):
            b(item)
            continue
        else:
            item.c()
            b(a)

def continue_in_else(items, a, b):
    for item in items:
        if a(item):
            b(item)
        else:
            continue

def try_with_else(a, b):
    try:
        a()
    except KeyError:
        return False
    else:
        b()
        return True

def try_without_else(a, b):
    try:
        a()
    except KeyError:
        return False
    b()
    return True

def raise_in_else(a, b):
    try:
        a()
    except KeyError as error:
        if error.a == b:
            raise ValueError(error)
        else:
            raise

def returns_none(a, b):
    if a:
        return b
    return None

def returns_none_early(a, b):
    if a:
        return
    b()

def returns_bare_beside_a_value(a, b):
    if a:
        return
    if b:
        return None
    return b

def passes(a, b):
    try:
        return a()
    except KeyError:
        pass

def returns_in_handler(a, b):
    try:
        return a()
    except KeyError:
        return

def continues_in_handler(items, a, b):
    for item in items:
        try:
            a(item)
            break
        except KeyError:
            continue

def returns_from_a_loop(items, a):
    for item in items:
        if item:
            return None
        a(item)
    return items

def not_and(a, b, c):
    if not (a and b):
        c()

def not_or(a, b, c):
    if not a or not b:
        c()

def not_within(a, b, c, d):
    if a and not (b and c):
        d()
    elif a or not (b or c):
        c()

def not_of_several(a, b, c, d):
    if a.e and not (b.e or c.e):
        d()
    if a.e and not b.e and not c.e:
        c()

def not_on_lines(a, b, c, d):
    if (
        a.f
        and not b.f
        and not (c.f and d.f)
    ):
        d()

def not_in_a_comprehension(a, b, c):
    return [x for x in a if not (x.b and x.c)], [x for x in a if not x.b or not x.c]

def nested_on_long_lines(a, b, c, d):
    if a is not None:
        if a.b and a.c and (a.d or
                            a.e):
            d()

def and_with_or(a, b, c, d):
    if isinstance(a, b) and (
        a.c is not d
        or a.d
        or not isinstance(b, c)
    ):
        return
    d()

def tests_a_loop(a, b, c):
    while a.b and a.c:
        a()
        if c:
            break

def breaks_a_loop(a, b, c):
    while a.b:
        if not a.c:
            break
        a()

def breaks_an_endless_loop(a, b):
    while True:
        if not a.b:
            break
        a()
        if b:
            a.c()

def breaks_behind(items, a):
    while True:
        if items.d:
            items.e()
            break
        items.b()
        items.c()

def leaves_with_a_statement(a, b):
    while True:
        c = a[b]
        if not c.d:
            b -= 1
            break
        a.e(c)
        b += 1

def in_order(a, b):
    if not a > b > 0:
        raise ValueError("%r and %r" % (a, b))
    c = "%r" % (a,)
    return f"{a!r} and {c}"

def one_statement(a, b):
    import json, os.path
    import sys
    del a.b, a.c
    del b[0]
    with a as c, b(1):
        pass
    with a as c:
        with b(2):
            json(os, sys)

def starred(items, children):
    for item in items:
        if not item:
            children.a(item)
            continue
        child, *rest = item
        children[child].append(rest)
    else:
        children.b()
        items.c()
    while items.d:
        items.e()
    assert items is not None
    return children

def returns_behind_try(a, b):
    try:
        if a:
            b.c()
    except KeyError:
        pass
    return None

def returns_behind_try_that_raises(a, b):
    try:
        if a:
            return b.c()
        elif b:
            a.d()
            return a.e()
    except KeyError as error:
        raise ValueError(b) from error
    return None

def returns_behind_finally(a, b):
    try:
        a()
        if b:
            return False
    except KeyError:
        b()
    except ValueError:
        a.c(b)
    finally:
        a.d()
    return True

def returns_behind_choice(a, b):
    try:
        with a.c(b) as d:
            if d:
                b(d)
            else:
                d.e()
                a(d)
            return 0
    except KeyError:
        return 1

def handles_what_ends_a_loop(items, a, b):
    while len(items) > 1:
        try:
            while True:
                a, b = c = items[0]
                c.d(b())
        except StopIteration:
            a(items)
    return items

def handles_all_that_ends_a_loop(items, a, b):
    while len(items) > 1:
        try:
            while True:
                a, b = c = items[0]
                c.d(b())
        except:
            a(items)
    return items

def cleans_up_behind_a_loop(items, a, b):
    for item in items:
        try:
            while True:
                if item.c():
                    break
                b(item)
        except KeyError:
            a(items)
        else:
            b(items)
            break
    return items

def loops_behind_finally(items, a, b):
    try:
        while True:
            a = items.c(b)
            a.d()
    finally:
        b(items)
        a.e()

def handles_all_and_returns(a, b):
    try:
        if a:
            b.c()
    except:
        pass
    return None

def handles_all_in_a_loop(items, a, b):
    while True:
        try:
            if a:
                return b.c()
        except:
            a(items)
            return None
        items = b(a)

def returns_the_first(items, a):
    for item in items:
        return a(item)
    else:
        raise KeyError(items)

def breaks_to_a_return(items, a):
    for item in items:
        if a(item):
            break
    else:
        return True
    return False

def returns_in_the_loop(items, a):
    for item in items:
        if a(item):
            return False
    return True

def asserts_in_else(a, b):
    if a:
        return b
    else:
        assert False, b.c

def asserts_zero(a, b):
    if a:
        b()
    if a:
        assert False, a.b
    elif b:
        assert False
    assert 0, b.c

def asserts_in_if(a, b):
    if a not in b:
        assert a.c, b
    if b:
        assert a.d
    assert not a or b, a

def elif_of_two_tests(a, b, c):
    if a < len(b):
        return a
    elif b and b in c:
        return b
    a()
    return c

def if_that_breaks_behind(a, b, c):
    while a < 3:
        if b and c == 0:
            break
        if not (-32768 <= c <= 32767):
            break
        a += 1
    return a

def function_in_else(a, b):
    if a:
        b()
        return True
    else:
        def c(d):
            b(d)
        for d in b:
            if d:
                c(d)
    return False

def continues_after_or(items, a, b):
    for item in items:
        if item is a or not b:
            continue
        item.add(b)
    return a

def passes_in_a_chain(a, b):
    if a():
        a.b()
    elif b():
        pass
    elif b.a() and a.b:
        pass
    elif a.c():
        b.d()
    elif a.d():
        return b.e()
    return None

def passes_beside_a_return_in_with(a, b, c, d):
    with a as f:
        if b:
            try:
                b(f)
                return c
            except ValueError:
                pass
        elif b.a and d > 0:
            c(f)
            return c
        d(f)
    return c

def returns_a_list_in_with(a, b, c):
    with a(b), c as d:
        for e in d:
            if e:
                return [e]
        return b(d) or d

def not_before_in(a, b, c):
    if not b or not a in c:
        return c
    if (a in c) or (b in c):
        c()
    if (a in c) and (b not in c):
        a()
    return b

def elif_that_continues(items, a, b):
    for item in items:
        if item.a():
            a(item)
        elif item == b:
            continue
        else:
            raise ValueError(item)

def returns_in_a_loop_if(items, a, b):
    for item in items:
        if item.a() or not item.b:
            return True
    if a:
        b()

def yields_none(a):
    yield None
    yield
    a()
    yield None

def breaks_out_of_with(a, b, items):
    for x in items:
        with a:
            while x():
                with b:
                    if x:
                        break
                g()
            else:
                continue
            k()

def breaks_out_of_with_before_a_statement(a, b, items):
    for x in items:
        with a:
            while x():
                with b:
                    if x:
                        break
                    g()
            else:
                continue
            k()
        m()

def breaks_a_for_out_of_with(a, b, items):
    for x in items:
        with a:
            for y in x():
                with b:
                    if y:
                        break
            else:
                continue
            k()

def breaks_out_of_finally(a, b, items):
    for x in items:
        with a:
            while x():
                try:
                    if x:
                        break
                    g()
                finally:
                    k()
            else:
                continue
            m()

def breaks_out_of_with_in_finally(a, b, items):
    for x in items:
        try:
            while x():
                with b:
                    if x:
                        break
                    g()
            else:
                continue
            m()
        finally:
            k()

def loop_with_break_ends_finally(a, b, items):
    for item in items:
        try:
            a(item)
        finally:
            b()
            while a(item):
                if b(item):
                    break

def loop_with_break_is_finally(a, b, items):
    try:
        a()
    finally:
        while items:
            if b(items):
                break

def tries_end_in_loops_with_break(a, b, items):
    for item in items:
        try:
            try:
                for each in item:
                    if each is None:
                        break
                else:
                    a(items)
                    continue
                a(item)
            except KeyError as error:
                b(error)
        finally:
            for each in item:
                if a(each):
                    break

def loops_end_in_break_in_finally(a, b, items):
    try:
        try:
            return a()
        finally:
            for each in items:
                if each:
                    return b
                if a(each):
                    break
    finally:
        with b:
            for each in items:
                for other in each:
                    if a(other):
                        break
                else:
                    continue
                break

def breaks_in_finally(a, b, items):
    for x in items:
        try:
            while x():
                if x:
                    break
            else:
                continue
            m()
        finally:
            k()

def tests_at_the_top_alone(a, b, items):
    while a > b:
        c = items[a]
        if a < c:
            items[a] = c
            a = c
            continue
        break
    items[a] = b

def tests_at_the_top_and_returns(a, b):
    while a.c and b:
        try:
            c = a.b()
        except TypeError:
            c = b.c()
            continue
        b(c)
        return
    b(a)

def always_breaks_out_of_with(a, b, items):
    for x in items:
        with a:
            while x:
                with b:
                    break
            else:
                continue
            g()

def returned_choice_with_a_constant(a, b):
    return a.b(b) if a is not None else None

def returned_choices(a, b, c):
    try:
        if a:
            return (b or 3) if a.b else None
        return b and (1 if a.b else 2)
    except ValueError:
        return a.b if c else a.c
    except KeyError as error:
        return a.b if c else error
    finally:
        c()

def returned_choice_behind_a_loop(a, b):
    while a():
        b()
    return 2 if b else 1 if a else None

def a_choice_for_two_variables(n, a):
    if n < 0:
        raise a
    first, second = a(n), 0
    while n:
        first, second, n = a(first), second, second

def a_test_with_or_behind_a_statement(i, j, a, b):
    i = a
    while i < a or j < b:
        if a:
            i += 1
        else:
            j += 2

def nested_in_the_last_elif(a, b, c, d):
    if a:
        b()
    elif c.x:
        if not d or d.pop() + a not in ("()", "[]"):
            raise ValueError
    elif c and d:
        if a:
            if b or c:
                d()

def percent_with_or(a, b, c):
    c("expected %r, found %s" % (a, b or "end"))
    c("%s %r" % (a if b else c, b), f"{a or b!s} {c if a else 'end'!r}")

def continue_in_a_clause_with_finally(a, b, c):
    for number in a:
        try:
            b()
        except ValueError:
            c()
            if number:
                continue
        else:
            c(number)
        finally:
            b(number)

def none_on_its_own_line(a, b, c):
    if (
        a.b(1)
        is None
    ):
        b()
    if (
        a.b(1)
        is not None
    ):
        c()

def definitions_behind_else(a, b):
    for i in a:
        b(i)
    else:
        class First:
            pass
    def second(): pass
    try:
        b()
    except ValueError:
        raise
    else:
        def third():
            return 3
    @a
    class Fourth:
        pass
    return second, third

def returns_out_of_managers_in_a_try(self, a, b):
    try:
        with self.c as d:
            if a:
                return self.f(d)
            with b(a):
                return self.f(d)
    except ValueError as error:
        if not self.r:
            raise KeyError from error
        raise

def returns_constants_out_of_managers(a, b):
    for item in a:
        with b:
            if item.a:
                return True
    while a():
        with b:
            if item.a:
                continue
            item.b()
            return 33
    return False

def jumps_at_the_end_of_managers(self, key, value):
    with self._lock:
        a = key(value)
        if a is None:
            self.pop(key)
            return
        b = value(a)
        if b is None:
            return
        c = self.get(key)
        if c is None:
            self[key] = value
            return
        if c < a:
            self[key] = b

def jumps_at_the_end_of_managers_in_a_loop(self, a, b):
    for i in a:
        with self:
            with b:
                try:
                    if not i:
                        continue
                    i.x()
                except ValueError:
                    if b:
                        continue
                    i.z()

def branches_at_the_end_of_a_manager(self, a, b):
    with self:
        if a.x:
            if not b:
                a.f()
                return
            b.f()
        elif b.x:
            b.g()
        else:
            if a:
                a.h()
                return
            b.i()

def passes_in_the_first_branch(a, b):
    if b is None or a.empty:
        return
    first = a[b]
    if b(first):
        pass
    elif a(first):
        a.loc = first
    else:
        raise ValueError

def constant_in_the_else_of_a_try(self, a):
    for s in self:
        try:
            s.f()
        except ValueError as error:
            if error.x:
                raise
        else:
            return True
    try:
        a()
        self.b()
    except KeyError:
        return False
    except ValueError as error:
        if error.x:
            return False
        raise
    else:
        return True

def walrus_in_a_nested_test(self, a):
    if a is None:
        if (t := self.get(a)) is not None:
            a = t.x
    for b in a:
        a.c(b)
    return a

def endless_loop_that_starts_with_a_loop(self, a):
    while True:
        while len(self.a) >= self.b > 0:
            a.wait()
        job = self.pop()
        if job is None:
            return
        while job.x:
            job.y()

def loop_that_returns_or_continues_first(self, a):
    while True:
        while self.heap:
            job = a(self.heap)
            if job.state is self:
                continue
            return job
        if self.stopping:
            return None
        self.wake()

def one_try_with_all_clauses(self, a, b):
    try:
        result = a(b)
    except KeyError as error:
        return f"! {error}"
    except TypeError:
        return "! usage"
    else:
        self.history.append(b)
        return result
    finally:
        b("commands")

def two_tries_with_clauses(self, a, b):
    try:
        try:
            result = a(b)
        except KeyError:
            self()
        else:
            b(result)
    finally:
        b("commands")


def tests_in_parentheses_in_a_loop(a, b):
    for x in a:
        if x:
            a(x)
        elif (b(x) or
              b(a) or
              b()):
            if x == 3:
                a.c()
                break
            else:
                a.d()
        elif x.y():
            a.e()
        else:
            a.f()


def returns_in_the_last_else_of_a_loop(a, b):
    while True:
        if a():
            b()
        else:
            return b.c

def returns_at_the_end_of_a_loop(a, b):
    while True:
        b()
        if a():
            return b

def returns_behind_a_loop(a, b):
    while True:
        b()
        if not a():
            break
    if not b:
        return b()
    a.b(b)

def loops_behind_a_loop(a, b):
    while True:
        a = b()
        if a:
            break
        b.d()
    while True:
        a = b.c()
        if a:
            break
        b()

def a_test_below_its_parenthesis(a, b):
    while True:
        if (
            a() == 3
            and b.c
            and b.d != 4
        ):
            if b():
                b.e()
            else:
                b.f()
                break
        elif a() == 5:
            b.g()
            break
        else:
            raise b


def returns_on_the_line_of_their_tests(a, b):
    while b != 1:
        b = a(b)
        if ab: return None
    for c in a:
        if (a.d or b): b = 1; return None
    if a.b(): return None
    else: b.c()
    b()

def pass_on_the_line_of_its_clause(a, b):
    b()
    try: a()
    except (ValueError): pass

def pass_on_the_line_of_a_clause_that_binds(a, b):
    b()
    try: a()
    except (ValueError, KeyError) as error: pass

def return_on_the_line_of_a_clause_that_binds(a, b):
    b()
    try: a()
    except ValueError as error: return None

def pass_on_the_line_of_a_test_in_a_loop(a, b):
    for c in a:
        if b: pass
    while b:
        if a and not c: pass

def tests_that_do_nothing_in_a_loop(a, b):
    for c in a:
        if not b:
            pass
    for c in b:
        if b:
            pass

def tries_until_one_works(a, b):
    for c in a:
        try:
            d = b(c)
            break
        except OSError:
            pass
    else:
        raise AssertionError
    if isinstance(d, list):
        for c in d:
            if c.a or c < 0:
                raise ValueError
    a.b = d


def tries_until_it_works(a, b):
    while True:
        try:
            c = a()
        except OSError:
            b()
            b.c()
        except ValueError:
            return b
        else:
            break
    try:
        b(c)
    finally:
        a.close()


def operands_in_the_column_of_the_body(a, b):
    if b is None:
        a()
    elif (a.c() and
        b.c()):
        a, b = (
            a.d * b.e,
            b.d * a.e
        )
    else:
        raise a.f
    return a(b)

def negations_below_each_other(a, b, c, d):
    if (not a.x and
        not b and
        c is None):
        d()

def a_group_that_a_negation_follows(a, b, c, d):
    if ((a > 0 or
         (a == 0 and b)) and
        not c(a, b)):
        return d

def a_negated_group_first(a, b):
    if (not (a.x or a.y) and
        a.z and b[0] == 1):
        b()

def a_branch_below_a_negated_test(items, a, b):
    for item in items:
        if not item[0] in a:
            raise a(item)
        b.append(item)
        if len(item) > 1 and item[1] in a:
            b(item)
    return b

def a_branch_that_breaks(items, a, b):
    a()
    try:
        for item in items:
            if item.version != 1:
                a(item)
                break
    finally:
        b()
    return b

def an_or_in_a_loop(items, a, b, c):
    for item in items:
        if a(item) or (b(item) and c(item)):
            item()
    return items

def two_tests_that_continue(items, a, b, c):
    for item in items:
        if not a(item):
            if not b(item):
                continue
            if not c(item):
                continue
        item()
    return items

def a_group_in_a_comprehension(a, b, c):
    return [d for d in a if b is None and (d or not c)]

def a_choice_in_a_comprehension(a):
    return [b for b in a if (b.c if b.d is None else b.e)]

def negated_tests_of_comprehensions(a, b, c, d):
    first = [x for x in a if not (x and b) or not (c or d)]
    second = {x for x in a if not x or not b}
    third = {x: b for x in a if not (x or b) and not (c and d)}
    fourth = (x for x in a if x or not (b and c))
    fifth = [x for x in a if x and b or not (c or d)]
    return first, second, third, fourth, fifth

def tests_that_break_at_the_start_of_a_loop(a, b, c, d):
    while a:
        if not b or not c:
            break
        c()
    while a or b:
        if not (a or b) or not (c and d):
            break
        a()
    while not (a and b):
        if c and d:
            break
        b()
    while not a:
        if b and not c:
            break
        d()
    while not (a or b or (c and d)):
        a()

def a_test_of_a_loop_in_the_column_of_a_branch(a, b, c):
    while (a
           and (b or c)):
        a = b()
        c()
"""

CASES = """
def case_of_pass(a):
    match a:
        case [b, *_]:
            pass
        case _:
            return
    b.c(a)
    a.d(b)

def case_that_does_it(a):
    match a:
        case [b, *_]:
            b.c(a)
            a.d(b)
        case _:
            return

def cases_of_pass(items, a):
    for item in items:
        match item:
            case [b, int(c)]:
                pass
            case {"c": c, "b": b}:
                pass
            case _:
                continue
        a(b, c)
        if b:
            return True
    return False

def wildcard_that_continues(a, b, c):
    for i in a:
        match i:
            case {**fields} if fields.get(b) == c:
                b()
                break
            case _:
                continue
    else:
        return None

def wildcard_of_the_inner_or_the_outer_match(a, b, c):
    for i in a:
        match i:
            case [1]:
                match b:
                    case [2, _]:
                        c()
                    case _:
                        pass
            case 2:
                continue
            case _:
                continue

def guard_of_an_empty_case(a, b, c):
    match a:
        case [1] if b:
            c()
        case [_, b] if c:
            pass
    c()

def match_with_one_value(a, b, c):
    for i in a:
        match i:
            case 1:
                match b:
                    case "x" if c:
                        b()
                    case _:
                        continue
            case 3:
                c()
    match a.b(3):
        case None:
            b()
        case _:
            c()
    match b:
        case -1:
            return 3
"""
if sys.version_info >= (3, 11):
    BY_COLUMNS += CASES


def functions(text: str) -> Dict[str, Function]:
    found = ast.parse(text).body
    return {each.name: each for each in found if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}


def code_of(text: str, name: str) -> CodeType:
    module = compile(text, "<author>", "exec", dont_inherit=True)  # this file has postponed annotations
    return next(each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == name)


def came_back(text: str, name: str) -> None:
    result = decompile_code(code_of(text, name))
    assert result.verdict.proved
    decompiled = ast.parse(result.source).body[0]
    assert isinstance(decompiled, ast.FunctionDef)
    assert ast.unparse(ast.parse(author_text(decompiled))) == ast.unparse(ast.parse(author_text(functions(text)[name])))


@pytest.mark.skipif(sys.version_info < (3, 9), reason="ast.unparse")
@pytest.mark.parametrize("name", functions(BY_LINES))
def test_lines_tell_the_text(name: str) -> None:
    came_back(BY_LINES, name)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="earlier compilers make the same of both")
@pytest.mark.parametrize("test", ["not a in b", "a not in b", "not a is b", "a is not b", "a is not None"])
@pytest.mark.parametrize(
    "text",
    [
        "    if {}:\n        return 1",
        "    while {}:\n        a += 1",
        "    assert {}, a",
        "    return [a for a in b if {}]",
    ],
)
def test_a_not_before_a_test_stays_there(text: str, test: str) -> None:
    source = f"def f(a, b):\n{text.format(test)}"
    result = decompile_code(code_of(source, "f"))
    assert result.verdict is Verdict.EXACT
    assert result.source.strip() == source


@pytest.mark.skipif(not HAS_COLUMNS, reason="line tables without columns")
@pytest.mark.parametrize("test", ["a is not None", "a not in b"])
def test_an_operand_on_the_next_line_does_not_turn_a_comparison(test: str) -> None:
    result = decompile_code(
        code_of(f"def f(a, b, c):\n    if {test} and (\n        not b or c\n    ):\n        a()\n", "f")
    )
    assert result.verdict is Verdict.EXACT
    assert f"    if {test} and (not b or c):\n" in result.source


@pytest.mark.skipif(not HAS_COLUMNS, reason="line tables without columns")
def test_two_tests_of_a_comprehension_make_no_knot() -> None:
    result = decompile_code(
        code_of("def f(a, b):\n    return [x for x in a if x.a\n            if not x and not b]", "f")
    )
    assert result.verdict.proved
    assert "[x for x in a if x.a and not x and not b]" in result.source


def test_an_assert_and_a_branch_that_raises_come_back_as_they_were() -> None:
    """Up to Python 3.8 both look the exception up: only the lines differ."""
    source = """\
def f(a, b):
    assert a
    if not a:
        raise AssertionError
    assert a and not b, 'text'
    while a:
        assert a is b, a(b)
        if a is not b:
            raise AssertionError('text')
    try:
        a()
    except KeyError:
        pass
    else:
        assert False
    if a:
        b()
    elif b:
        assert False, 'text'
    return a
"""
    answer = decompile_code(compile(source, "<program>", "exec", dont_inherit=True, optimize=0))
    assert answer.verdict.proved, answer.reason
    assert answer.source == source


@pytest.mark.parametrize("sign", ["", "-"])
def test_an_operand_that_repr_refuses_comes_back(sign: str) -> None:
    number = hex(1 << 20_000)
    answer = decompile_code(compile(f"def f(a, b):\n    return a or {sign}{number} or b()", "<program>", "exec"))
    assert answer.verdict.proved, answer.reason


@pytest.mark.parametrize("constant", ["1", "-1", "-0.5", "1e309", "-1e309", "2j", "1 + 2j", "(1, -2)", "b'b'", "None"])
@pytest.mark.parametrize("text", ["{} or b()", "a and {} or b()", "a or {} or b()", "{} and b()"])
def test_a_constant_that_is_an_operand_stays_one(text: str, constant: str) -> None:
    """Compilers that fold ``-1`` late don't drop the operand behind it: no second constant is needed to keep that."""
    source = f"def f(a, b):\n    return {text.format(constant)}"
    answer = decompile_code(compile(source, "<program>", "exec", dont_inherit=True))
    assert answer.verdict.proved, answer.reason
    assert answer.source.count(constant.lstrip("-(")) <= 1, answer.source


@pytest.mark.parametrize("rest", ["b()", "raise b", "while True:\n            def g(c=a):\n                return c"])
def test_a_clause_that_ends_in_front_of_an_else_does_not_return(rest: str) -> None:
    source = f"def f(a, b):\n    try:\n        a()\n    except KeyError:\n        b()\n    else:\n        {rest}"
    result = decompile_code(code_of(source, "f"))
    assert result.verdict.proved, result.reason
    if not COPIES_RETURNS:  # else a return in the clause compiles to the same operations
        assert result.source.strip() == source


@pytest.mark.skipif(not HAS_COLUMNS, reason="line tables without columns")
@pytest.mark.parametrize("name", functions(BY_COLUMNS))
def test_columns_tell_the_text(name: str) -> None:
    came_back(BY_COLUMNS, name)


@pytest.mark.skipif(not HAS_COLUMNS, reason="line tables without columns")
def test_definitions_behind_the_else_of_a_loop_are_behind_it_in_modules_and_classes() -> None:
    block = "for a in b:\n    a()\nelse:\n    del a\ndef first():\n    return 3\n@c\nclass Second:\n    x = 1\n"
    text = f"{block}class Third:\n" + "".join(f"    {line}\n" for line in block.splitlines())
    result = decompile_code(compile(text, "<author>", "exec", dont_inherit=True))
    assert result.verdict is Verdict.EXACT
    assert ast.unparse(ast.parse(result.source)) == ast.unparse(ast.parse(text))


@pytest.mark.skipif(not HAS_COLUMNS, reason="line tables without columns")
@pytest.mark.parametrize("width", [2, 8])
@pytest.mark.parametrize("name", functions(BY_COLUMNS))
@pytest.mark.shared
def test_the_width_of_the_indentation_does_not_matter(name: str, width: int) -> None:
    if name == "nested_on_long_lines":
        pytest.skip("nothing in it tells how wide its indentation is")
    if name in ("a_group_that_a_negation_follows", "negations_below_each_other") and width == 8:
        pytest.skip("an operand is in the column of the body")
    if name == "elif_that_continues" and width == 2:
        pytest.skip("continue has no column: elif, and if in else, have their tests at the same one")
    if name in ("a_test_below_its_parenthesis", "operands_in_the_column_of_the_body") and width == 2:
        pytest.skip("such a test may begin anywhere in so narrow a block")
    lines = []
    for line in BY_COLUMNS.splitlines():
        bare = line.lstrip(" ")
        lines.append(" " * ((len(line) - len(bare)) // 4 * width) + bare)
    came_back("\n".join(lines), name)


def test_without_columns_every_function_is_proved() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_author_text as tests\n"
        "for text in (tests.BY_LINES, tests.BY_COLUMNS):\n"
        "    for name in tests.functions(text):\n"
        "        result = tests.decompile_code(tests.code_of(text, name))\n"
        "        assert result.verdict.proved, (name, result.reason)\n"
        "print('done')\n"
    )
    flags = ["-X", "no_debug_ranges"] if HAS_COLUMNS else []
    paths = [path for path in sys.path if path]
    command = [
        sys.executable,
        *flags,
        "-c",
        f"import sys; sys.path[:0] = {paths!r}\n" + program,
        __file__.rpartition("/")[0],
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.skipif(not HAS_COLUMNS, reason="line tables without columns")
@pytest.mark.parametrize("form", [Form.READABLE, Form.PLAIN])
def test_a_function_that_is_not_proved_as_written_costs_no_other_its_form(form: Form) -> None:
    function = (
        "def first(a, b):\n    for c in a:\n        if c:\n            b(c)\n            continue\n        a(b)\n"
    )
    text = function + function.replace("first", "second")
    module = compile(text, "<author>", "exec")
    attempts = Attempts(module, "<module>", None, None)
    attempts.form, attempts.culprits = form, {id(code) for code in module.co_consts if "second" in repr(code)}
    attempt = attempts.attempt()
    assert attempt.comparison.proved
    found, expected = functions(attempt.source.text), functions(text)
    assert author_text(found["first"]) == author_text(expected["first"])
    assert author_text(found["second"]) != author_text(expected["second"])


def line_table(size: int, choices: random.Random) -> bytes:
    """A line table for ``size`` code units with lines and columns that mean nothing (Objects/locations.md)."""
    table: List[int] = []
    while size > 0:
        count = min(size, choices.randint(1, 8))
        start = choices.randint(0, 40)
        table += [0x80 | choices.choice([10, 11, 12]) << 3 | count - 1, start, start + choices.choice([1, 4, 6, 8])]
        size -= count
    return bytes(table)


@pytest.mark.skipif(not HAS_COLUMNS, reason="line tables without columns")
@pytest.mark.parametrize("name", functions(BY_COLUMNS + BY_LINES))
@pytest.mark.shared
def test_places_that_mean_nothing_cost_no_proof(name: str) -> None:
    code = code_of(BY_COLUMNS + BY_LINES, name)
    for seed in range(3):
        table = line_table(len(code.co_code) // 2, random.Random(seed))
        result = decompile_code(code.replace(co_linetable=table))
        assert result.verdict in (Verdict.EXACT, Verdict.EQUIVALENT), result.reason


@pytest.mark.skipif(sys.version_info < (3, 9), reason="ast.unparse")
@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("return None or return", "if a:\n  return None\n b()", "if a:\n  return\n b()"),
        ("else behind a branch that leaves", "if a:\n  return b\n else:\n  c()", "if a:\n  return b\n c()"),
        ("nested if or and", "if a:\n  if b:\n   c()", "if a and b:\n  c()"),
        ("not", "if not (a and b):\n  c()", "if not a or not b:\n  c()"),
        (
            "continue or return where control goes anyway",
            "for x in a:\n  if x:\n   continue\n  b()",
            "for x in a:\n  if not x:\n   b()",
        ),
        ("branches swapped", "if not a:\n  b()\n else:\n  c()", "if a:\n  c()\n else:\n  b()"),
        ("return of a choice or two returns", "return a if b else c", "if b:\n  return a\n else:\n  return c"),
        ("one statement or two (import, with, del)", "import a, b", "import a\n import b"),
        ("else of a loop or try, or behind it", "for x in a:\n  b()\n else:\n  c()", "for x in a:\n  b()\n c()"),
        ("% or f-string", "return '%s' % (a,)", "return f'{a!s}'"),
    ],
)
def test_the_measurement_names_the_classes(name: str, left: str, right: str) -> None:
    assert name in CLASSES
    texts = [f"def f(a, b, c):\n {text}" for text in (left, right)]
    assert name in differences(*texts)
    assert differences(texts[0], f"def f(a, b, c):\n {right}\n x()") == ["other"]
