"""The audit log: one line of JSON for each request, in the form of Kubernetes' audit events at level Metadata."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from uuid import uuid4

from drayman.api.struct import Json
from drayman.api.times import timestamp
from drayman.apiserver.protocol.access import Attributes, user_info
from drayman.apiserver.protocol.environment import SystemClock
from drayman.apiserver.protocol.exchange import Request


@dataclass(frozen=True, slots=True)
class AuditLog:
    """Appends to a file that only its owner can read."""

    _file: TextIOWrapper

    @classmethod
    def open(cls, path: Path) -> AuditLog:
        """Raises OSError."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return cls(os.fdopen(descriptor, "a", encoding="utf-8", buffering=1))

    def finished(self, request: Request, attributes: Attributes, code: int, seconds: float) -> None:
        event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": str(uuid4()),
            "stage": "ResponseComplete",
            "requestURI": request.raw_path or request.path,
            "verb": attributes.verb,
            "user": user_info(request.impersonator or request.user),
            **_impersonation(request),
            "sourceIPs": [request.peer],
            "userAgent": request.header("user-agent"),
            "objectRef": _reference(attributes),
            "responseStatus": {"code": code},
            "stageTimestamp": timestamp(SystemClock().now()),
            "annotations": {"drayman.dev/duration": f"{seconds * 1000:.1f}ms"},
        }
        self._file.write(json.dumps(event, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.close()


def _impersonation(request: Request) -> dict[str, Json]:
    """Whom the user acts as, and by which constrained right."""
    if request.impersonator is None:
        return {}
    impersonated: dict[str, Json] = {"impersonatedUser": user_info(request.user)}
    if request.constraint:
        impersonated["authenticationMetadata"] = {"impersonationConstraint": request.constraint}
    return impersonated


def _reference(attributes: Attributes) -> dict[str, str]:
    members = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "apiGroup": attributes.group,
        "apiVersion": attributes.version,
        "subresource": attributes.subresource,
    }
    return {name: value for name, value in members.items() if value}
