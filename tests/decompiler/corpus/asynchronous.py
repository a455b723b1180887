"""Coroutines, async for, async with, async generators and comprehensions."""

import asyncio


class Manager:
    def __init__(self, suppress=False):
        self.suppress = suppress

    async def __aenter__(self):
        print('enter')
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, kind, value, traceback):
        print('exit', kind and kind.__name__)
        return self.suppress


# run: ticks(2)
async def ticks(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


# run: coroutine(1)
async def coroutine(a):
    return a + 1


# run: awaits(1)
async def awaits(a):
    return await coroutine(a)


# run: awaits_twice(1)
async def awaits_twice(a):
    x = await coroutine(a)
    y = await coroutine(x)
    return x, y


# run: await_in_expression(1)
async def await_in_expression(a):
    return await coroutine(a) * 2 + await coroutine(await coroutine(a))


# run: await_in_condition(1)
# run: await_in_condition(-1)
async def await_in_condition(a):
    if await coroutine(a):
        return 'true'
    return 'false'


# run: await_statement()
async def await_statement():
    await asyncio.sleep(0)


# run: async_for(3)
async def async_for(n):
    total = 0
    async for i in ticks(n):
        total += i
    return total


# run: async_for_break(5)
async def async_for_break(n):
    async for i in ticks(n):
        if i == 2:
            break
        print(i)
    else:
        print('never')
    return i


# run: async_for_else(2)
async def async_for_else(n):
    async for i in ticks(n):
        print(i)
    else:
        print('else')


# run: async_for_continue(5)
async def async_for_continue(n):
    found = []
    async for i in ticks(n):
        if i % 2:
            continue
        found.append(i)
    return found


# run: async_for_return(5)
async def async_for_return(n):
    async for i in ticks(n):
        if i > 2:
            return i
    return None


# run: async_with()
async def async_with():
    async with Manager() as m:
        print('inside')
    return m.suppress


# run: async_with_no_name()
async def async_with_no_name():
    async with Manager():
        return 'returned inside'


# run: async_with_two()
async def async_with_two():
    async with Manager() as a, Manager(True) as b:
        raise ValueError(a is b)


# run: async_with_suppress()
async def async_with_suppress():
    async with Manager(True):
        raise ValueError
    return 'suppressed'


# run: async_generator(3)
async def async_generator(n):
    for i in range(n):
        yield i
        await asyncio.sleep(0)


# run: async_generator_finally(2)
async def async_generator_finally(n):
    try:
        async for i in ticks(n):
            yield i
    finally:
        print('done')


# run: async_list(3)
async def async_list(n):
    return [i async for i in ticks(n)]


# run: async_set(3)
async def async_set(n):
    return {i % 2 async for i in ticks(n) if i}


# run: async_dict(3)
async def async_dict(n):
    return {i: await coroutine(i) async for i in ticks(n)}


# run: await_in_comprehension(3)
async def await_in_comprehension(n):
    return [await coroutine(i) for i in range(n)]


# run: async_generator_expression(3)
async def async_generator_expression(n):
    return [x async for x in (i * 2 async for i in ticks(n))]


# run: async_try()
async def async_try():
    try:
        await asyncio.sleep(0)
        raise KeyError('k')
    except KeyError as error:
        return await coroutine(len(error.args))
    finally:
        await asyncio.sleep(0)
        print('finally')


# run: async_gather()
async def async_gather():
    return await asyncio.gather(coroutine(1), coroutine(2))


# run: async_closure(2)
async def async_closure(n):
    async def inner(a):
        return a + n

    return await inner(1)


# run: async_method()
async def async_method():
    class Worker:
        async def work(self):
            return await coroutine(5)

    return await Worker().work()


# run: async_loop_with_try(4)
async def async_loop_with_try(n):
    result = []
    async for i in ticks(n):
        try:
            result.append(1 / i)
        except ZeroDivisionError:
            result.append(None)
    return result


# run: async_while(3)
async def async_while(n):
    while n:
        async with Manager():
            n -= 1
            if n == 1:
                break
    return n


# run: comprehension_before_the_end(4)
# run: comprehension_before_the_end(0)
async def comprehension_before_the_end(n):
    if n > 2:
        {i: n async for i in ticks(n) if i}
    elif n:
        print(n)
    [[]]
