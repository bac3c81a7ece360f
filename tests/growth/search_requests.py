"""Looks for requests whose work grows faster than their size. For a process of its own: `python -m growth.search_requests`.

    search_requests.py PART PARTS

Prints a line for each place that grows too fast, and then how many lists and maps were tried.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Hashable, Iterator, Sequence

from growth.metering import meter_package

METER = meter_package("drayman")

from api.schema.wire import encode, envelope  # noqa: E402
from drayman.apiserver.protocol import errors  # noqa: E402
from growth.comparing import Growth, steep  # noqa: E402
from growth.documents import Place, grown, message_of, places, together  # noqa: E402
from growth.requesting import FORMS, JSON, Served, collection, served, writes  # noqa: E402

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
ITEMS = 24 if IS_LONG else 12
errors.MOST_ERROR_TEXT = 0
"""Only the first error is shown: what is left out beyond the limit must not grow either."""
PROTOBUF = "application/vnd.kubernetes.protobuf"
MOST_PATCHED = 16
"""With more lists at once an object is written as a whole only: patches do not compare them with each other."""
VARIANTS = ("distinct", "full", "same", "empty")


def chosen(target: Served) -> Iterator[tuple[Place, ...]]:
    """Every list and map of every kind, alone and with those beside it; by default, of those that kinds share, each once."""
    seen: set[Hashable] = set()
    resources = sorted(target.server.core.resources, key=lambda one: "update" not in one.verbs)
    for resource in resources:
        for version in resource.versions:
            found = list(places(resource, version))
            for group in [*((place,) for place in found), *together(found)]:
                # Alone once for all versions, together in each of them: that is how they are converted.
                shared: Hashable = (
                    group[0].shared
                    if len(group) == 1
                    else tuple((one.owner, one.field) for one in group)
                )
                if IS_LONG or shared not in seen:
                    seen.add(shared)
                    yield group


async def tried(target: Served, group: Sequence[Place], count: int, variant: str) -> None:
    """Everything that clients can do with an object whose lists or maps are so long."""
    resource, version = group[0].resource, group[0].version
    obj, path = grown(group, count, variant), collection(resource, version)
    name = obj["metadata"]["name"]
    await target.send("POST", path, obj, dryRun="All")
    raw = encode(message_of(resource, version), obj)
    data = envelope(obj["apiVersion"], obj["kind"], raw)
    await target.send("POST", path, data, PROTOBUF, dryRun="All")
    if "update" not in resource.verbs:
        return
    await target.keep(resource, version, obj)
    is_whole = IS_LONG or len(group) <= MOST_PATCHED
    if variant == "distinct" and is_whole:
        for _, method, where, body, query in writes(group, obj):
            rest = {key: value for key, value in query.items() if key != "type"}
            await target.send(method, where, body, query.get("type", JSON), **rest)
        for form in FORMS:
            await target.send("GET", f"{path}/{name}", accept=form)
    else:
        await target.send("PUT", f"{path}/{name}", obj, dryRun="All")
        await target.send("GET", f"{path}/{name}", accept=FORMS[2])
    await target.drop(resource, obj)


async def searched(target: Served, group: Sequence[Place]) -> dict[str, tuple[str, Growth]]:
    """The places that grow too fast, each with what the items were like."""
    found: dict[str, tuple[str, Growth]] = {}
    for variant in VARIANTS if IS_LONG or len(group) <= MOST_PATCHED else VARIANTS[::2]:

        async def work(count: int, variant: str = variant) -> None:
            await tried(target, group, count, variant)

        for growth in await steep(METER, work, ITEMS, lists=len(group)):
            found.setdefault(growth.place, (variant, growth))
    return found


async def main(part: int, parts: int) -> None:
    number = 0
    async with served() as target:
        for group in list(chosen(target))[part::parts]:
            number += 1
            for variant, growth in (await searched(target, group)).values():
                title = f"{group[0]}" + (f" and {len(group) - 1} more" if group[1:] else "")
                sys.stdout.write(f"{title} ({variant}): {growth}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{number} tried\n")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
