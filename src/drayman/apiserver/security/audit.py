"""The audit log: one line of JSON for each request, in the form of Kubernetes' audit events at level Metadata."""

from __future__ import annotations

import errno
import json
import logging
import os
from datetime import timedelta
from pathlib import Path
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


class AuditLog:
    """Appends to a file that only its owner can read.

    A line that cannot be written is lost, and `problem` says why until one can be again: the request it is about is done already, so
    its answer must not change.
    """

    def __init__(self, path: Path, errors: Counter) -> None:
        """`errors` counts the lines that are lost. Raises OSError."""
        self.problem: str | None = None
        self._path = path
        self._errors = errors
        self._is_torn = _ends_within_a_line(path)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

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
        data = b"\n" + line if self._is_torn else line
        try:
            written = os.write(self._file, data)
            if written < len(data):
                self._is_torn = True
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._errors.inc()
            if self.problem is None:
                log.error("%s: %s; audit events are being lost", self._path, error.strerror)
            self.problem = f"{self._path}: {error.strerror}"
        else:
            if self.problem is not None:
                log.warning("%s can be written again", self._path)
            self.problem, self._is_torn = None, False

    def close(self) -> None:
        os.close(self._file)


def _ends_within_a_line(path: Path) -> bool:
    """Whether the last line of a file was cut short, as by a crash."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


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
