"""A process whose disk is full for a while: no file of it may grow beyond a limit. Prints what its writes met, as JSON.

full_disk.py STORE
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys

from drayman.cluster.embedded import Key, Put, Store, StoreError

_LIMIT = 256 * 1024


def pod(name: str) -> Key:
    return Key("pods", "default", name)


def large(revision: int) -> bytes:
    return b'{"pad":"%020000d"}' % revision


async def main(path: str) -> dict[str, object]:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = Store.open(path)
    await store.write([Put(pod("before"), large, 0)])
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT, hard))
    tries = [store.write([Put(pod(f"many-{n}"), large, 0)]) for n in range(50)]
    # These build on one another: none may survive the one before it.
    tries += [store.write([Put(pod("chain"), large, 0 if n == 0 else None)]) for n in range(5)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    stored = [r[0].key.name for r in results if isinstance(r, tuple)]
    errors = [str(r) for r in results if isinstance(r, StoreError)]
    seen = {
        "visible": [s.key.name for s in store.list("pods")],
        "latest": [name for name in ("chain", "many-49") if store.latest(pod(name)) is not None],
        "revision": store.revision,
    }
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    (after,) = await store.write([Put(pod("after"), large, 0)])
    store.close()
    return {"stored": stored, "errors": errors, "after": after.revision, **seen}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1]))))
