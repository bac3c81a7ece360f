"""The volumes of one pod: made before its first container starts, and kept up to date while it runs.

As with a kubelet, what changes in ConfigMaps, Secrets and the pod's own metadata reaches containers that run, within a minute or so, and
tokens are renewed long before they expire. A mount of a `subPath` keeps what it began with. Where something is missing later, the files
that there are stay.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from drayman.cluster.background import in_background
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.node.agent.environment import OwnFacts, SourceError, Sources
from drayman.node.agent.folders import make_private
from drayman.node.agent.reading import read_sources, request_token
from drayman.node.agent.spec import RunnablePod, TokenSource, Volume
from drayman.node.agent.volumes.empty_dirs import set_up_medium, unmount_all
from drayman.node.agent.volumes.files import Tokens, files_of, set_up, wanted_tokens
from drayman.node.agent.volumes.group_ownership import give_to_group, readable_by_group

_log: Final = logging.getLogger(__name__)
LOOK_AGAIN_S: Final = 60.0
_SPREAD: Final = 0.25
"""Of that time, by which pods of a node differ."""
_OLD: Final = 0.8
"""The part of its time after which a token is renewed, as a kubelet has it."""
_OLDEST_S: Final = 24 * 3600.0

Warn = Callable[[str, str], None]
"""Takes the reason and the note of an event."""


class PodVolumes:
    """`folder` has all of them; `look_again_s` is how long a change may go unnoticed."""

    def __init__(
        self,
        folder: Path,
        client: Client,
        facts: OwnFacts,
        warn: Warn,
        look_again_s: float = LOOK_AGAIN_S,
    ) -> None:
        self.paths: dict[str, Path] = {}
        """What containers are shown, by the name of the volume."""
        self.sources = Sources()
        """What variables of containers come from, as last read."""
        self._folder = folder
        self._client = client
        self._facts = facts
        self._warn = warn
        self._look_again_s = look_again_s
        self._tokens: dict[TokenSource, tuple[str, float]] = {}
        """Each with the time when it is renewed."""
        self._has_read = False
        self._working = asyncio.Lock()
        self._is_changed = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def set_up(self, pod: RunnablePod, memory: int | None) -> None:
        """Have them ready for a container. Raises SourceError, ClusterError and OSError if something is missing that never was there.

        Otherwise containers are started again with the files and variables that are known, also while nobody answers.
        `memory` is how much the pod may use.
        """
        async with self._working:
            try:
                self.sources = await read_sources(self._client, pod)
            except ClusterError as error:
                if not self._has_read:
                    raise
                self._hindered(error)
            self._has_read = True
            make_private(self._folder)
            for volume in pod.spec.volumes:
                if volume.name not in self.paths:
                    self.paths[volume.name] = await self._set_up(pod, volume, memory)
                elif volume.has_files:
                    await self._bring_up_to_date(pod, volume, memory)

    def keep(self, pod: Callable[[], RunnablePod], memory: int | None) -> None:
        """Look again and again from now on, until `close`. `pod` gives the pod as it is then."""
        if any(volume.has_files for volume in pod().spec.volumes):
            self._keeping = in_background(self._keep(pod, memory), "looking after volumes", _log)

    async def close(self) -> None:
        """Leave them as they are."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)

    async def _keep(self, pod: Callable[[], RunnablePod], memory: int | None) -> None:
        while True:
            spread = random.uniform(1 - _SPREAD, 1 + _SPREAD)
            try:
                async with asyncio.timeout(self._look_again_s * spread):
                    await self._is_changed.wait()
            except TimeoutError:
                pass
            self._is_changed.clear()
            async with self._working:
                await self._look_again(pod(), memory)

    async def _look_again(self, pod: RunnablePod, memory: int | None) -> None:
        try:
            self.sources = await read_sources(self._client, pod)
        except ClusterError as error:
            self._hindered(error)
            return
        for volume in pod.spec.volumes:
            if volume.has_files:
                await self._bring_up_to_date(pod, volume, memory)

    async def _bring_up_to_date(self, pod: RunnablePod, volume: Volume, memory: int | None) -> None:
        """Each by itself: what one lacks does not keep the token of another from being renewed."""
        try:
            await self._set_up(pod, volume, memory)
        except (SourceError, ClusterError, OSError) as error:
            self._hindered(error)

    def _hindered(self, error: Exception) -> None:
        self._warn("FailedMount", f"volumes are not brought up to date: {error}")

    def changed(self) -> None:
        """The pod itself has changed: its files may have to."""
        self._is_changed.set()

    def free_memory(self) -> None:
        """Give back what volumes hold in memory, once no container runs. Raises OSError."""
        unmount_all(self._folder)

    async def _set_up(self, pod: RunnablePod, volume: Volume, memory: int | None) -> Path:
        folder, security = self._folder / volume.name, pod.spec.security_context
        group = None if security is None else security.fs_group
        files = files_of(
            pod, volume, self.sources, await self._tokens_for(pod, volume), self._facts
        )
        if files is not None and group is not None:
            files = readable_by_group(files)
        shown = set_up(folder, volume, files)
        if volume.empty_dir is not None:
            ignored = set_up_medium(volume.name, folder, volume.empty_dir, memory)
            if ignored:
                self._warn("NotActedOn", ignored)
        if group is not None and volume.host_path is None:
            give_to_group(folder, group, is_filled=files is not None)
        return shown

    async def _tokens_for(self, pod: RunnablePod, volume: Volume) -> Tokens:
        for wanted in wanted_tokens(volume):
            now = time.time()
            _, renew_at = self._tokens.get(wanted, ("", now))
            if renew_at <= now:
                token = await request_token(self._client, pod, wanted)
                lasts = min(_OLD * (token.expires_at - now), _OLDEST_S)
                self._tokens[wanted] = (token.value, now + lasts)
        return {wanted: value for wanted, (value, _) in self._tokens.items()}
