"""Which configuration of queues is in use, and where it is from.

There is one rule. A file, where one was given, is the source: it is read again when it changes, and its text is kept in the ConfigMap
(`published.py`), whatever somebody else writes there. Without a file the ConfigMap is the source, and is followed. Either may come to
make no sense while the cluster runs: then the last one that did stays in use.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from drayman.controllers.quota.configuration import (
    ConfigurationFileError,
    QueueConfiguration,
    default_configuration,
    read_configuration,
)

_log: Final = logging.getLogger(__name__)


class ConfigurationSource:
    """The configuration in use, and the file it is from."""

    def __init__(
        self,
        configuration: QueueConfiguration | None = None,
        path: Path | None = None,
        text: str = "",
    ) -> None:
        self.current = configuration or default_configuration()
        self.path = path
        self.text = text
        """What it was read from; empty: the defaults."""
        self._listeners: list[Callable[[QueueConfiguration], None]] = []
        self._seen = self._stamp()

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Raises ConfigurationFileError and OSError."""
        data = path.read_bytes()
        return cls(read_configuration(str(path), data), path, data.decode())

    def listen(self, listener: Callable[[QueueConfiguration], None]) -> None:
        self._listeners.append(listener)

    def look(self) -> str | None:
        """Reads the file again if it has changed. Why it cannot be used, empty if it can, None if it has not changed."""
        stamp = self._stamp()
        if stamp == self._seen or stamp is None or self.path is None:
            return None
        self._seen = stamp
        try:
            data = self.path.read_bytes()
        except OSError as error:
            return self._refused(str(error))
        return self.offer(str(self.path), data)

    def offer(self, name: str, data: bytes) -> str:
        """Has a configuration be in use if it makes sense. Otherwise the last one stays: returns why."""
        try:
            found = read_configuration(name, data)
        except ConfigurationFileError as error:
            return self._refused(str(error))
        _log.info("%s: the configuration of queues is in use", name)
        self.text = data.decode()
        self.use(found)
        return ""

    def use_defaults(self) -> None:
        """There is no configuration any more."""
        self.text = ""
        self.use(default_configuration())

    def use(self, configuration: QueueConfiguration) -> None:
        """Have another configuration be in use from now on."""
        self.current = configuration
        for listener in self._listeners:
            listener(configuration)

    def _refused(self, problem: str) -> str:
        _log.warning("%s; the configuration of queues before it stays in use", problem)
        return problem

    def _stamp(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
