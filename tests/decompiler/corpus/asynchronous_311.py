"""Asynchronous comprehensions inside of other comprehensions, which 3.11 allows."""

import asyncio


# run: ticks(2)
async def ticks(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


# run: async_nested_comprehension(3)
async def async_nested_comprehension(n):
    return [[i * j async for j in ticks(i)] for i in range(n)]


# run: comprehension_in_generator([10, 20])
async def comprehension_in_generator(items):
    lists = ([i + j async for i in ticks(2)] for j in items)
    return [x async for x in lists]
