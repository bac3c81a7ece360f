"""Writes what has become of a pod to its status, whenever that is something else than before."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from drayman.api.core import Pod
from drayman.api.struct import Json
from drayman.api.times import timestamp
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, NotFoundError
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import strategic_merge_patch
from drayman.cluster.resources import PODS
from drayman.node.agent.status import Since
from drayman.node.reporting import MANAGER

_PODS: Final = PODS.as_values()
_OPTIONS: Final = WriteOptions(field_manager=MANAGER)
_log: Final = logging.getLogger(__name__)


class StatusWriter:
    """Of one pod. `gone` is called if the API does not have it any more."""

    def __init__(self, client: Client, pod: Pod, gone: Callable[[], None]) -> None:
        self._client = client
        self._meta = pod.metadata
        self._gone = gone
        self._written: dict[str, Json] = {}
        self.begun = pod.status.start_time or now()
        self.since: Since = {
            c.type_: (c.status, c.last_transition_time or self.begun) for c in pod.status.conditions
        }
        """The conditions as they were last reported, maybe by an agent before this one."""

    async def write(self, status: dict[str, Json]) -> bool:
        """Whether it is known now. What was refused has to be said again."""
        if status == self._written:
            return True
        meta = self._meta
        patch = strategic_merge_patch({"metadata": {"uid": meta.uid}, "status": status})
        try:
            await self._client.patch(
                _PODS, meta.name, patch, meta.namespace, subresource="status", options=_OPTIONS
            )
        except NotFoundError:
            self._gone()
        except ClusterError as error:
            _log.warning("the status of %s/%s was refused: %s", meta.namespace, meta.name, error)
            return False
        self._written = status
        self.since = {
            c["type"]: (c["status"], c["lastTransitionTime"]) for c in status["conditions"]
        }
        return True


def now() -> str:
    return timestamp(datetime.now(UTC))
