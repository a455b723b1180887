"""try, except, else, finally, raise, and leaving through all of them."""

import contextlib


# run: simple_except(lambda: 1)
# run: simple_except(lambda: 1 / 0)
def simple_except(f):
    try:
        f()
    except ZeroDivisionError:
        print('caught')


# run: bare_except(lambda: 1 / 0)
def bare_except(f):
    try:
        return f()
    except:
        return 'any'


# run: named_except(lambda: [][0])
def named_except(f):
    try:
        f()
    except IndexError as error:
        print(error)
    return 'error' in locals()


# run: tuple_except(lambda: {}[1])
# run: tuple_except(lambda: [][1])
# run: tuple_except(lambda: None.x)
def tuple_except(f):
    try:
        return f()
    except (KeyError, IndexError) as error:
        return repr(error)


# run: several_excepts(lambda: {}[1])
# run: several_excepts(lambda: [][1])
# run: several_excepts(lambda: None.x)
# run: several_excepts(lambda: 1 / 0)
def several_excepts(f):
    try:
        f()
    except KeyError:
        print('key')
    except IndexError as error:
        print('index', error)
    except AttributeError:
        return 'attribute'
    return 'end'


# run: try_else(lambda: 1)
# run: try_else(lambda: 1 / 0)
def try_else(f):
    try:
        x = f()
    except ZeroDivisionError:
        x = None
    else:
        print('fine')
    return x


# run: try_finally(lambda: 1)
# run: try_finally(lambda: 1 / 0)
def try_finally(f):
    try:
        f()
    finally:
        print('finally')


# run: full_try(lambda: 1)
# run: full_try(lambda: 1 / 0)
# run: full_try(lambda: [][0])
def full_try(f):
    try:
        x = f()
    except ZeroDivisionError as error:
        print('caught', error)
        x = 0
    else:
        print('else')
    finally:
        print('finally')
    return x


# run: return_in_try(1)
def return_in_try(a):
    try:
        return a
    finally:
        print('finally')


# run: return_in_finally(lambda: 1 / 0)
# run: return_in_finally(lambda: 1)
def return_in_finally(f):
    try:
        return f()
    finally:
        return 'final'


# run: return_everywhere(lambda: 1)
# run: return_everywhere(lambda: 1 / 0)
# run: return_everywhere(lambda: [][0])
def return_everywhere(f):
    try:
        return f()
    except ZeroDivisionError:
        return 'zero'
    finally:
        print('out')


# run: return_changed_value()
def return_changed_value():
    x = 1
    try:
        return x
    finally:
        x = 2
        print(x)


# run: break_in_try([1, 2])
def break_in_try(a):
    for x in a:
        try:
            if x == 1:
                break
        finally:
            print('finally', x)
    return x


# run: continue_in_try([1, 2])
def continue_in_try(a):
    for x in a:
        try:
            if x == 1:
                continue
            print('body', x)
        finally:
            print('finally', x)


# run: break_in_except([lambda: 1, lambda: 1 / 0, lambda: 2])
def break_in_except(functions):
    for f in functions:
        try:
            print(f())
        except ZeroDivisionError:
            break
    else:
        print('else')


# run: continue_in_except(['1', 'x', '2'])
def continue_in_except(a):
    total = 0
    for x in a:
        try:
            n = int(x)
        except ValueError:
            continue
        total += n
    return total


# run: break_in_finally([1, 2])
def break_in_finally(a):
    for x in a:
        try:
            1 / 0
        finally:
            break
    return x


# run: continue_in_finally([1, 2])
def continue_in_finally(a):
    for x in a:
        try:
            1 / 0
        finally:
            continue
    return x


# run: return_in_except_as(lambda: 1 / 0)
def return_in_except_as(f):
    try:
        f()
    except Exception as error:
        return type(error).__name__


# run: nested_try(lambda: 1 / 0)
# run: nested_try(lambda: [][0])
# run: nested_try(lambda: {}[0])
def nested_try(f):
    try:
        try:
            f()
        except ZeroDivisionError:
            print('inner')
            raise
        finally:
            print('inner finally')
    except (ZeroDivisionError, IndexError):
        print('outer')
    finally:
        print('outer finally')


# run: try_in_except(lambda: 1 / 0, lambda: [][0])
# run: try_in_except(lambda: 1 / 0, lambda: {}[0])
def try_in_except(f, g):
    try:
        f()
    except ZeroDivisionError:
        try:
            g()
        except IndexError:
            return 'both'
        return 'first'


# run: try_in_finally(lambda: 1 / 0)
# run: try_in_finally(lambda: 1)
def try_in_finally(f):
    try:
        f()
    finally:
        try:
            raise KeyError('inside')
        except KeyError as error:
            print(error)


# run: try_in_else(lambda: 1)
def try_in_else(f):
    try:
        f()
    except ZeroDivisionError:
        pass
    else:
        try:
            raise KeyError
        except KeyError:
            print('else')


# run: triple_finally(lambda: 1)
# run: triple_finally(lambda: 1 / 0)
def triple_finally(f):
    try:
        try:
            try:
                return f()
            finally:
                print(1)
        finally:
            print(2)
    finally:
        print(3)


# run: reraise(lambda: 1 / 0)
def reraise(f):
    try:
        f()
    except ZeroDivisionError:
        print('passing on')
        raise


# run: raise_plain()
def raise_plain():
    raise ValueError


# run: raise_call(3)
def raise_call(n):
    raise ValueError('bad', n)


# run: raise_from(lambda: 1 / 0)
def raise_from(f):
    try:
        f()
    except ZeroDivisionError as error:
        raise ValueError('wrapped') from error


# run: raise_from_none(lambda: 1 / 0)
def raise_from_none(f):
    try:
        f()
    except ZeroDivisionError:
        raise ValueError('clean') from None


# run: raise_in_finally(lambda: 1 / 0)
def raise_in_finally(f):
    try:
        f()
    finally:
        raise KeyError('other')


# run: bare_raise_nothing()
def bare_raise_nothing():
    raise


# run: assert_plain(1)
# run: assert_plain(0)
def assert_plain(a):
    assert a


# run: assert_message(1)
# run: assert_message(0)
def assert_message(a):
    assert a > 0, f'a is {a}'


# run: assert_boolean(1, 0)
# run: assert_boolean(1, 1)
def assert_boolean(a, b):
    assert a and b, 'both'
    return 'ok'


# run: assert_not(1)
def assert_not(a):
    assert not a, (a, 'truthy')


# run: exception_name_is_deleted(lambda: 1 / 0)
def exception_name_is_deleted(f):
    error = 'before'
    try:
        f()
    except ZeroDivisionError as error:
        pass
    try:
        return error
    except NameError:
        return 'deleted'


# run: exception_name_reassigned(lambda: 1 / 0)
def exception_name_reassigned(f):
    try:
        f()
    except ZeroDivisionError as error:
        error = 'mine'
        print(error)


# run: exception_name_deleted_by_hand(lambda: 1 / 0)
def exception_name_deleted_by_hand(f):
    try:
        f()
    except ZeroDivisionError as error:
        del error
    return 'ok'


# run: context_is_kept(lambda: 1 / 0)
def context_is_kept(f):
    try:
        f()
    except ZeroDivisionError:
        raise KeyError('second')


# run: retry_loop([ValueError, ValueError, None])
def retry_loop(outcomes):
    tries = 0
    while True:
        tries += 1
        try:
            outcome = outcomes[tries - 1]
            if outcome:
                raise outcome
            return tries
        except ValueError:
            if tries > 5:
                raise


# run: loop_in_try([1, 0])
def loop_in_try(a):
    try:
        for x in a:
            print(1 / x)
    except ZeroDivisionError:
        print('stopped')


# run: if_in_except(lambda: 1 / 0, True)
# run: if_in_except(lambda: 1 / 0, False)
def if_in_except(f, flag):
    try:
        f()
    except ZeroDivisionError:
        if flag:
            return 'flag'
        raise
    return 'none'


# run: if_in_finally(True)
# run: if_in_finally(False)
def if_in_finally(flag):
    try:
        print('body')
    finally:
        if flag:
            print('flag')
        else:
            print('no flag')


# run: loop_in_finally(2)
def loop_in_finally(n):
    try:
        return n
    finally:
        for i in range(n):
            print(i)


# run: finally_with_return_in_loop([1, 2])
def finally_with_return_in_loop(a):
    for x in a:
        try:
            if x == 2:
                return x
        finally:
            print('step', x)
    return None


# run: else_with_return(lambda: 1)
# run: else_with_return(lambda: 1 / 0)
def else_with_return(f):
    try:
        f()
    except ZeroDivisionError:
        print('bad')
    else:
        return 'good'
    return 'end'


# run: else_and_finally_no_except_match(lambda: [][0])
def else_and_finally_no_except_match(f):
    try:
        f()
    except KeyError:
        print('key')
    else:
        print('else')
    finally:
        print('finally')


# run: except_expression(lambda: 1 / 0, 0)
def except_expression(f, i):
    kinds = (ZeroDivisionError, KeyError)
    try:
        f()
    except kinds[i]:
        return i
    except Exception:
        return 'other'


# run: pass_everywhere(lambda: 1 / 0)
def pass_everywhere(f):
    try:
        f()
    except ZeroDivisionError:
        pass
    else:
        pass
    finally:
        pass


# run: try_around_return_of_loop([[1], [0]])
def try_around_return_of_loop(a):
    try:
        for row in a:
            for x in row:
                if not x:
                    return 'zero'
        return 'none'
    except TypeError:
        return 'type'
    finally:
        print('bye')


# run: nested_finally_break([1, 2, 3])
def nested_finally_break(a):
    for x in a:
        try:
            try:
                if x == 2:
                    break
            finally:
                print('inner', x)
        finally:
            print('outer', x)
    else:
        print('else')


# run: import_fallback()
def import_fallback():
    try:
        import no_such_module_for_sure as chosen
    except ImportError:
        import json as chosen
    return chosen.__name__


# run: sys_exc_info(lambda: 1 / 0)
def sys_exc_info(f):
    import sys

    try:
        f()
    except ZeroDivisionError:
        inside = sys.exc_info()[0]
    return inside, sys.exc_info()[0]


# run: exc_info_nested(lambda: 1 / 0, lambda: [][0])
def exc_info_nested(f, g):
    import sys

    try:
        f()
    except ZeroDivisionError:
        try:
            g()
        except IndexError:
            first = sys.exc_info()[0]
        second = sys.exc_info()[0]
    return first, second


# run: else_of_a_cell(lambda: 1)()
# run: else_of_a_cell(lambda: {}[1])()
def else_of_a_cell(f):
    found = False
    try:
        value = f()
    except KeyError:
        value = None
    else:
        found = True
    return lambda: (found, value)


# run: only_the_clause_returns_none(lambda: 1)
# run: only_the_clause_returns_none(lambda: {}[1])
def only_the_clause_returns_none(f):
    try:
        value = f()
    except KeyError:
        return None
    copy = value
    if copy:
        return [copy]
    return copy


# run: finally_tests_identity(1, {})
# run: finally_tests_identity(1, {'key': 2})
# run: finally_tests_identity(None, {})
def finally_tests_identity(value, store):
    unset = object()
    old = unset
    try:
        with contextlib.suppress(KeyError):
            old = store['key']
            store['key'] = value
    finally:
        if old is unset:
            pass
        elif value is None:
            del store['key']
        else:
            store['old'] = old
    return sorted(store.items())


# run: finally_breaks_a_return([0, 1])
# run: finally_breaks_a_return([1, 0])
def finally_breaks_a_return(items):
    for count in items:
        for more in [10, 20]:
            try:
                return count + more
            finally:
                if count:
                    break
    return 'end', count, more


# run: finally_returns_instead(lambda: 1, 0)
# run: finally_returns_instead(lambda: 1, 2)
# run: finally_returns_instead(lambda: 1 / 0, 2)
def finally_returns_instead(f, value):
    try:
        return f()
    finally:
        if value:
            return [value]


# run: finally_continues_twice([1, 2, 3], [1, 0, 1, 0, 1, 1])
# run: finally_continues_twice([1, 2, 3], [0, 0])
# run: finally_continues_twice([1, 2, 3], [])
def finally_continues_twice(items, answers):
    for item in items:
        try:
            try:
                return item
            finally:
                if answers.pop():
                    continue
        finally:
            if answers.pop():
                break
    return 'end', item, answers


# run: finally_in_finally(lambda: 1, [])
# run: finally_in_finally(lambda: 1 / 0, [])
# run: finally_in_finally(lambda: 1 / 0, [3])
# run: finally_in_finally(lambda: 1, [3])
def finally_in_finally(f, items):
    try:
        f()
    finally:
        try:
            f()
        finally:
            if items:
                items.append(1)
                raise KeyError(items)


# run: finally_in_finally_returns([0, 1], lambda: 1)
# run: finally_in_finally_returns([0, 1], lambda: 1 / 0)
def finally_in_finally_returns(items, f):
    for x in items:
        try:
            if not x:
                continue
            return x
        finally:
            try:
                f()
            except ZeroDivisionError:
                return 5
            finally:
                print(x)


# run: list(finally_around_loops([1, 1, 2], iter([3, 0])))
# run: list(finally_around_loops([0], iter([0])))
def finally_around_loops(items, numbers):
    try:
        yield
    finally:
        try:
            while next(numbers):
                if items.pop() == 2:
                    break
            else:
                print('else')
        finally:
            items = [item for item in items if item]
            if items:
                try:
                    items[5]
                except LookupError:
                    pass
                raise KeyError(4)


# run: handled_behind_tests([("a", True), ("a", (1,)), ("b", True), ("a", ())], 1)
# run: handled_behind_tests(None, 1)
def handled_behind_tests(pairs, wanted):
    found = []
    try:
        for kind, trust in pairs:
            if kind == "a":
                if trust is True or wanted in trust:
                    try:
                        found.append(1 // len(found))
                    except ZeroDivisionError as error:
                        found.append(str(error))
    except TypeError:
        found.append("no pairs")
    return found


# run: returned_value_lost(lambda: 1, 5)
# run: returned_value_lost(lambda: 1 / 0, 5)
def returned_value_lost(f, x):
    try:
        return f()
    finally:
        return x


# run: list(returned_value_lost_to_an_exception([0, 1], KeyError(3), lambda: print('made')))
# run: list(returned_value_lost_to_an_exception([2], KeyError(4), lambda: 1 / 0))
def returned_value_lost_to_an_exception(items, raised, f):
    for x in items:
        try:
            yield x
            if x == 1:
                return returned
            if x == 2:
                return f()
            if x == 3:
                break
            continue
        finally:
            raise raised


# run: free_variable_never_reached(1)
def free_variable_never_reached(x):
    y = 2

    def inner():
        if False:
            print(x)
        return y

    class Inner:
        if False:
            print(x)
        z = y

    return inner(), Inner.z, inner.__code__.co_freevars


# run: finally_left_for_behind_the_loop([1, 2], [0, 1], [1])
# run: finally_left_for_behind_the_loop([1, 2], [1, 1], [])
def finally_left_for_behind_the_loop(turns, stops, answers):
    while turns:
        try:
            turns.pop()
            if answers:
                continue
        finally:
            print('out')
            if stops.pop():
                break
            try:
                print('in')
            finally:
                print(answers)
            return turns
    print('behind')
    return turns, stops


# run: break_out_of_two_finally(lambda: 1 / 0)
# run: break_out_of_two_finally(lambda: 1)
def break_out_of_two_finally(f):
    while f:
        try:
            print('in')
            try:
                return f()
            except KeyError:
                print('caught')
            finally:
                print('inner')
                break
            raise ValueError
        finally:
            print('outer')
            break
    else:
        print('else')
    return 'behind'


# run: return_in_finally_in_finally([1, 2], lambda: 1 / 0)
# run: return_in_finally_in_finally([1, 2], lambda: 1)
# run: return_in_finally_in_finally([], lambda: 1)
def return_in_finally_in_finally(items, f):
    for item in items:
        try:
            f()
        except ZeroDivisionError:
            break
        finally:
            print(item)
            try:
                if item == 2:
                    return
                return f()
            finally:
                print('inner')
                return
    return items


# run: returns_behind_clauses({}, 1)
# run: returns_behind_clauses({1: 2}, 1)
# run: returns_behind_clauses([], 1)
def returns_behind_clauses(items, key):
    try:
        try:
            print(items[key])
        except KeyError as error:
            print(error)
        return no_such_name
    except NameError as error:
        try:
            print(items[key + 1])
        except KeyError:
            print(error.__context__)
        return contextlib.suppress


# run: returns_out_of_managers([[1, 2], [3]], 3)
# run: returns_out_of_managers([[1, 2], [3]], 1)
# run: returns_out_of_managers([[1, 2], [3], 4], 5)
def returns_out_of_managers(rows, wanted):
    for row in rows:
        for value in row:
            try:
                with contextlib.suppress(KeyError) as none:
                    try:
                        print({2: none}[value])
                    except KeyError:
                        if value == wanted:
                            return value, row
                    if value > wanted:
                        return row, value
                print(value)
            except TypeError:
                return none
