"""The audit log: one line of JSON for each request, in the form of Kubernetes' audit events at level Metadata."""

from __future__ import annotations

import errno
import json
import logging
import os
from datetime import timedelta
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import Final
from uuid import uuid4

from prometheus_client import Counter

from drayman.api.struct import Json
from drayman.api.times import micro_timestamp
from drayman.apiserver.protocol.access import Attributes, user_info
from drayman.apiserver.protocol.environment import SystemClock
from drayman.apiserver.protocol.exchange import Request

log = logging.getLogger(__name__)

_LONGEST_NAME: Final = 253
_PIECE: Final = 64 * 1024
MOST_WAITING: Final = 10_000
"""So many events wait for the disk at most; further ones are lost."""


class AuditLog:
    """Appends to a file that only its owner can read, in a thread of its own: a slow disk must not keep requests waiting.

    A line that cannot be written is lost, and `problem` says why until one can be again: the request it is about is done already, so
    its answer must not change. What was written of it is taken away again, so that every line of the file is a whole event.
    """

    def __init__(self, path: Path, errors: Counter) -> None:
        """`errors` counts the lines that are lost. Raises OSError."""
        self.problem: str | None = None
        self._path = path
        self._errors = errors
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._torn_at = _end_of_last_line(self._file)
        self._lines: Queue[bytes | None] = Queue(MOST_WAITING)
        self._writer = Thread(target=self._write_all, name="audit log", daemon=True)
        self._writer.start()

    def finished(self, request: Request, attributes: Attributes, code: int, seconds: float) -> None:
        now = SystemClock().now()
        event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": str(uuid4()),
            "stage": "ResponseComplete",
            "requestURI": request.raw_path or request.path,
            "verb": attributes.verb,
            "user": user_info(request.sender),
            **_impersonation(request),
            "sourceIPs": [request.peer],
            "userAgent": request.header("user-agent"),
            **_reference(request, attributes),
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": micro_timestamp(now - timedelta(seconds=seconds)),
            "stageTimestamp": micro_timestamp(now),
            "annotations": {
                "drayman.dev/duration": f"{seconds * 1000:.1f}ms",
                **request.annotations,
            },
        }
        self._append(json.dumps(event, separators=(",", ":")).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        try:
            self._lines.put_nowait(line)
        except Full:
            self._lost(f"more than {MOST_WAITING} events wait to be written")

    def _write_all(self) -> None:
        """The work of the thread, until the log is closed."""
        while (line := self._lines.get()) is not None:
            try:
                self._write(line)
            except OSError as error:
                self._lost(error.strerror or str(error))
            else:
                if self.problem is not None:
                    log.warning("%s can be written again", self._path)
                self.problem = None
            finally:
                self._lines.task_done()

    def _write(self, line: bytes) -> None:
        """Raises OSError, and leaves nothing of the line behind, now or before the next one."""
        if self._torn_at is not None:
            os.ftruncate(self._file, self._torn_at)
            self._torn_at = None
        start = os.fstat(self._file).st_size
        written = os.write(self._file, line)
        if written < len(line):
            self._torn_at = start
            os.ftruncate(self._file, start)
            self._torn_at = None
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _lost(self, why: str) -> None:
        self._errors.inc()
        if self.problem is None:
            log.error("%s: %s; audit events are being lost", self._path, why)
        self.problem = f"{self._path}: {why}"

    def flush(self) -> None:
        """Returns when everything so far is written or lost."""
        self._lines.join()

    def close(self) -> None:
        """Write what waits, and end."""
        self._lines.put(None)
        self._writer.join()
        os.close(self._file)


def _end_of_last_line(file: int) -> int | None:
    """Where a line begins that was cut short, as by a crash; None if the last one is whole."""
    size = place = os.fstat(file).st_size
    while place > 0:
        start = max(0, place - _PIECE)
        found = os.pread(file, place - start, start).rfind(b"\n")
        if found >= 0:
            return None if start + found + 1 == size else start + found + 1
        place = start
    return 0 if size else None


def _impersonation(request: Request) -> dict[str, Json]:
    """Whom the user acts as, and by which constrained right."""
    if request.impersonator is None:
        return {}
    impersonated: dict[str, Json] = {"impersonatedUser": user_info(request.user)}
    if request.constraint:
        impersonated["authenticationMetadata"] = {"impersonationConstraint": request.constraint}
    return impersonated


def _reference(request: Request, attributes: Attributes) -> dict[str, Json]:
    """What the request is about; nothing for one that is not about a resource. A new name that is too long for any object is left out."""
    if not attributes.is_resource_request:
        return {}
    new_name = request.new_name
    members = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": attributes.name or (new_name if len(new_name) <= _LONGEST_NAME else ""),
        "apiGroup": attributes.group,
        "apiVersion": attributes.version,
        "subresource": attributes.subresource,
    }
    return {"objectRef": {name: value for name, value in members.items() if value}}
