"""A process that writes to a store until it is killed, and says on standard output which writes were acknowledged.

    crash_writer.py STORE SEED

Several writers work at the same time. Write number n of a writer creates the objects `WRITER-n` in two resources, and moves the
writer's counter from n - 1 to n; or, at random, removes both halves of an earlier pair as well. All of that is one transaction.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from random import Random

from drayman.cluster.embedded import Delete, Key, Put, Retention, Store
from drayman.cluster.embedded.model import Operation

WRITERS = 8


def pair(writer: int, number: int) -> tuple[Key, Key]:
    name = f"{writer}-{number:06}"
    return Key("lefts", "crash", name), Key("rights", "crash", name)


def put(key: Key, number: int, expected: int) -> Put:
    def encode(revision: int) -> bytes:
        return json.dumps({"resourceVersion": str(revision), "number": number}).encode()

    return Put(key, encode, expected)


def delete(key: Key) -> Delete:
    return Delete(key, lambda revision: json.dumps({"resourceVersion": str(revision)}).encode())


async def write(store: Store, writer: int, rng: Random) -> None:
    counter = Key("counters", "crash", str(writer))
    while True:
        known = store.get(counter)
        number = 1 if known is None else known.value["number"] + 1
        operations: list[Operation] = [put(counter, number, 0 if known is None else known.revision)]
        operations += [put(key, number, 0) for key in pair(writer, number)]
        victim = rng.randrange(1, number + 1)
        if victim < number and store.get(pair(writer, victim)[0]) is not None:
            operations += [delete(key) for key in pair(writer, victim)]
        else:
            victim = 0
        await store.write(operations)
        os.write(sys.stdout.fileno(), f"{writer} {number} {victim}\n".encode())


async def main(path: str, seed: int) -> None:
    store = Store.open(path, retention=Retention(changes=500))
    await asyncio.gather(*(write(store, n, Random(seed * WRITERS + n)) for n in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
