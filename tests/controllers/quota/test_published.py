"""The configuration of queues as a ConfigMap: kept like the file where there is one, followed where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from controllers.quota.waiting_room import Room, waiting_room
from drayman.cluster.informer import Informer, Selection
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import CONFIG_MAPS, EVENTS, NAMESPACES, JsonObject, Resource
from drayman.controllers.quota.source import ConfigurationSource
from drayman.quota.settings import CONFIG_KEY, CONFIG_MAP, KUEUE_NAMESPACE
from patience import PATIENCE_S

PLAIN = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
WITHOUT_QUEUE = PLAIN + "manageJobsWithoutQueueName: true\n"
NONSENSE = PLAIN + "manageJobsWithoutQueueName: perhaps\n"


async def there(
    room: Room, resource: Resource[JsonObject], holds: Callable[[list[JsonObject]], bool]
) -> None:
    """Returns when something holds of the objects in Kueue's namespace."""
    changed = asyncio.Event()
    informer = Informer(room.place.client, Selection(resource, KUEUE_NAMESPACE))
    informer.add_handler(lambda _: changed.set())
    async with informer, asyncio.timeout(PATIENCE_S):
        await informer.wait_synced()
        while not holds(list(informer.cache)):
            changed.clear()
            await changed.wait()


def event(reason: str, words: str = "") -> Callable[[list[JsonObject]], bool]:
    return lambda events: any(
        each["reason"] == reason and words in str(each.get("note", "")) for each in events
    )


def text(wanted: str) -> Callable[[list[JsonObject]], bool]:
    return lambda found: any(each["data"] == {CONFIG_KEY: wanted} for each in found)


async def write(room: Room, wanted: str) -> None:
    patch = merge_patch({"data": {CONFIG_KEY: wanted}})
    await room.place.client.patch(CONFIG_MAPS, CONFIG_MAP, patch, KUEUE_NAMESPACE)


async def create(room: Room, wanted: str) -> None:
    client = room.place.client
    await client.create(NAMESPACES.as_values(), {"metadata": {"name": KUEUE_NAMESPACE}})
    body = {"metadata": {"name": CONFIG_MAP}, "data": {CONFIG_KEY: wanted}}
    await client.create(CONFIG_MAPS, body, KUEUE_NAMESPACE)


async def test_a_file_is_kept_in_the_config_map(tmp_path: Path) -> None:
    """Also when it changes, and when somebody else writes there; what makes no sense is reported and is not put there."""
    path = tmp_path / "kueue.yaml"
    path.write_text(PLAIN)
    async with waiting_room(ConfigurationSource.of_file(path)) as room:
        await there(room, CONFIG_MAPS, text(PLAIN))
        await there(room, EVENTS, event("ConfigurationInUse", str(path)))
        await write(room, WITHOUT_QUEUE)
        await there(room, EVENTS, event("ConfigurationReplaced", str(path)))
        await there(room, CONFIG_MAPS, text(PLAIN))
        assert not room.source.current.intake.without_queue
        path.write_text(WITHOUT_QUEUE)
        await there(room, CONFIG_MAPS, text(WITHOUT_QUEUE))
        path.write_text(NONSENSE)
        await there(room, EVENTS, event("ConfigurationInvalid", "manageJobsWithoutQueueName"))
        await there(room, CONFIG_MAPS, text(WITHOUT_QUEUE))
        await room.place.client.delete(CONFIG_MAPS, CONFIG_MAP, KUEUE_NAMESPACE)
        await there(room, CONFIG_MAPS, text(WITHOUT_QUEUE))


async def test_without_a_file_the_config_map_is_followed() -> None:
    """From the start, and at each change; what makes no sense is reported, and the last one that did stays in use."""
    source = ConfigurationSource()
    changed = asyncio.Event()
    source.listen(lambda _: changed.set())
    async with waiting_room(source) as room, asyncio.timeout(PATIENCE_S):
        await create(room, WITHOUT_QUEUE)
        await changed.wait()
        assert source.current.intake.without_queue
        await there(room, EVENTS, event("ConfigurationInUse"))
        await write(room, NONSENSE)
        await there(room, EVENTS, event("ConfigurationInvalid", "manageJobsWithoutQueueName"))
        assert source.current.intake.without_queue
        changed.clear()
        await room.place.client.delete(CONFIG_MAPS, CONFIG_MAP, KUEUE_NAMESPACE)
        await changed.wait()
        assert not source.current.intake.without_queue
