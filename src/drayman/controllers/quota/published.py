"""The configuration of queues as an object: the ConfigMap that Kueue is installed with, so that everybody can read what is in use.

Where a file was given, its text is kept there, and other text is replaced by it. Where none was given, the ConfigMap is what is used, as
soon as it is written; without it, the defaults. What happens is said in events of the ConfigMap:

- `ConfigurationInUse`: this text is in use from now on.
- `ConfigurationInvalid`: it makes no sense, for these reasons; what was in use before still is.
- `ConfigurationReplaced`: somebody changed it, and the file has been put back.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from drayman.api.core import EventType
from drayman.cluster.errors import AlreadyExistsError, NotFoundError
from drayman.cluster.informer import Informer, Notice, Selection
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import CONFIG_MAPS, NAMESPACES, JsonObject
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.source import ConfigurationSource
from drayman.quota.settings import CONFIG_KEY, CONFIG_MAP, KUEUE_NAMESPACE

RELOAD_S: Final = 1.0
"""How often the file is looked at."""
_KEY: Final = (KUEUE_NAMESPACE, CONFIG_MAP)
_NAME: Final = f"configmap {KUEUE_NAMESPACE}/{CONFIG_MAP}"


class PublishedConfiguration:
    """Keeps the ConfigMap and what is in use the same."""

    def __init__(self, shared: Shared, source: ConfigurationSource) -> None:
        self._shared = shared
        self._source = source
        self._loop = Loop("configuration of queues", self.attend, workers=1)
        self._refused = ""
        """Text of the ConfigMap that makes no sense, and was reported."""
        self._problem = ""
        """What is wrong with the file as it is now."""
        self._written = ""
        """What we have written; other text than this was not written by us."""
        shared.informers.informer(NAMESPACES).add_handler(self._namespace_changed)

    async def begin(self) -> None:
        """Without a file: use what the ConfigMap says, before anything is decided."""
        if self._source.path is None:
            await self.attend(_KEY)

    async def run(self) -> None:
        """Works until cancelled."""
        selection: Selection[JsonObject] = Selection(
            CONFIG_MAPS, KUEUE_NAMESPACE, field_selector=f"metadata.name={CONFIG_MAP}"
        )
        informer = Informer(self._shared.client, selection)
        informer.add_handler(lambda _: self._loop.queue.add(_KEY))
        async with informer, asyncio.TaskGroup() as group:
            self._loop.start(group)
            self._loop.queue.add(_KEY)
            while self._source.path is not None:
                await asyncio.sleep(RELOAD_S)
                self.look()

    def look(self) -> None:
        """Read the file again if it has changed."""
        problem = self._source.look()
        if problem is not None:
            self._problem = problem
            self._loop.queue.add(_KEY)

    def _namespace_changed(self, notice: Notice[Any]) -> None:
        """A ConfigMap cannot be written while its namespace ends."""
        if notice.type == "DELETED" and notice.object.metadata.name == KUEUE_NAMESPACE:
            self._loop.queue.add(_KEY)

    async def attend(self, _key: Key) -> None:
        try:
            found = await self._shared.client.get(CONFIG_MAPS, CONFIG_MAP, KUEUE_NAMESPACE)
        except NotFoundError:
            found = None
        if self._source.path is not None:
            await self._publish(found)
        else:
            self._follow(found)

    # Without a file.

    def _follow(self, found: JsonObject | None) -> None:
        text = "" if found is None else _text_of(found)
        if text == self._source.text or (text and text == self._refused):
            return
        self._refused = ""
        if found is None or not text:
            self._source.use_defaults()
            return
        problem = self._source.offer(_NAME, text.encode())
        if problem:
            self._refused = text
            self._say(found, "Warning", "ConfigurationInvalid", _stays(problem))
        else:
            self._say(found, "Normal", "ConfigurationInUse", "Queues work by it from now on.")

    # With a file.

    async def _publish(self, found: JsonObject | None) -> None:
        source = self._source
        is_ours = found is None or _text_of(found) in (source.text, self._written)
        if found is None:
            found = await self._create(source.text)
        elif _text_of(found) != source.text:
            patch = merge_patch({"data": {CONFIG_KEY: source.text}})
            found = await self._shared.client.patch(CONFIG_MAPS, CONFIG_MAP, patch, KUEUE_NAMESPACE)
        if not is_ours:
            text = f"It is kept as in {source.path}, with which the cluster was started: change that file instead."
            self._say(found, "Warning", "ConfigurationReplaced", text)
        elif self._written != source.text:
            self._say(found, "Normal", "ConfigurationInUse", f"It is that of {source.path}.")
        self._written = source.text
        if self._problem:
            problem, self._problem = self._problem, ""
            self._say(found, "Warning", "ConfigurationInvalid", _stays(problem))

    async def _create(self, text: str) -> JsonObject:
        with suppress(AlreadyExistsError):
            namespace = {"metadata": {"name": KUEUE_NAMESPACE}}
            await self._shared.client.create(NAMESPACES.as_values(), namespace)
        body: JsonObject = {
            "metadata": {"name": CONFIG_MAP, "namespace": KUEUE_NAMESPACE},
            "data": {CONFIG_KEY: text},
        }
        return await self._shared.client.create(CONFIG_MAPS, body)

    def _say(self, found: JsonObject, type_: EventType, reason: str, note: str) -> None:
        self._shared.record(CONFIG_MAPS, found, type_, reason, note)


def _text_of(config_map: JsonObject) -> str:
    text = (config_map.get("data") or {}).get(CONFIG_KEY)
    return text if isinstance(text, str) else ""


def _stays(problem: str) -> str:
    return f"{problem}\nWhat was in use before still is."
