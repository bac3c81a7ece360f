"""Objects being written to the cluster: how many are done, and up to which version a reader has to look to see them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from drayman.api.struct import Json
from drayman.cluster.errors import AlreadyExistsError, ClusterError
from drayman.cluster.options import WriteOptions
from drayman.cluster.resources import Resource
from drayman.cluster.together import Bundle
from drayman.cluster.writes import CreateWrite, PatchWrite
from drayman.node.reporting import MANAGER

Report = Callable[[int, int], None]
"""Called with how much is done, and of how much."""

WRITE_OPTIONS: Final = WriteOptions(field_manager=MANAGER)


class Publication:
    """Makes changes to objects, and tracks their outcome."""

    def __init__(self, expected: int, report: Report | None = None) -> None:
        self._expected = expected
        self._report = report
        self._done = 0
        self._versions: dict[str, str] = {}

    @property
    def versions(self) -> Mapping[str, str]:
        """By resource: the version of what was written last. What was there before is older."""
        return self._versions

    def create(self, resource: Resource[Any], value: Json) -> Bundle:
        """Make an object unless it already exists."""
        namespace = value["metadata"].get("namespace") if isinstance(value, dict) else None
        write = CreateWrite(resource, value, namespace, WRITE_OPTIONS)
        return Bundle((write,), self._unless_there, partial(self._written, resource))

    def patch(self, write: PatchWrite[Any]) -> Bundle:
        """Change an object that has to exist."""
        return Bundle((write,), _raise, partial(self._written, write.resource))

    def _written(self, resource: Resource[Any], answers: Sequence[object]) -> None:
        for answer in answers:
            # Writes are carried out one after the other, so the last one has the newest version.
            self._versions[resource.qualified] = resource.codec.identity(answer).resource_version
        self._is_there()

    def _unless_there(self, error: ClusterError) -> None:
        if not isinstance(error, AlreadyExistsError):
            raise error
        self._is_there()

    def _is_there(self) -> None:
        self._done += 1
        if self._report is not None:
            self._report(self._done, self._expected)


def _raise(error: ClusterError) -> None:
    raise error
