"""The circumstances of a write that tests decide: other objects, time and ids; and the steps a server takes with an object."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from drayman.api.validation import FieldError
from drayman.apiserver.kinds import admission_plugins, builtin_resources
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.shaping import normalised
from drayman.apiserver.served.strategy import Context, Object
from drayman.apiserver.verbs.admission import Admission, Admitted

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID = "00000000-0000-4000-8000-000000000001"
RESOURCES = {(resource.group, resource.kind): resource for resource in builtin_resources()}


@dataclass
class Objects:
    """Objects by storage name, namespace and name."""

    stored: dict[tuple[str, str, str], Object] = field(default_factory=dict)

    def add(self, resource: str, obj: Object) -> None:
        metadata = obj["metadata"]
        self.stored[resource, metadata.get("namespace", ""), metadata["name"]] = obj

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return self.stored.get((resource, namespace, name))

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        return [
            obj
            for (kind, space, _), obj in self.stored.items()
            if kind == resource and namespace in (None, space)
        ]


class SameId:
    """Always the same id, so that results can be compared."""

    def uid(self) -> str:
        return UID

    def suffix(self) -> str:
        return "abcde"


def make_context(objects: Objects | None = None, version: str = "v1") -> Context:
    return Context(objects or Objects(), NOW, SameId(), version=version, namespace="ns")


def resource_of(group: str, kind: str) -> ApiResource:
    return RESOURCES[group, kind]


def pod(**spec: Any) -> Object:
    """A pod with one container, and more in its spec."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "ns", "uid": UID},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}], **spec},
    }


def created(resource: ApiResource, obj: Object, context: Context) -> Object:
    """The object as it would be stored, before validation: defaults, admission, preparation."""
    obj["metadata"]["uid"] = UID
    resource.strategy.default(obj, context)
    admission = Admission(admission_plugins())
    name = obj["metadata"].get("name", "")
    admission.admit(Admitted("CREATE", resource, "", "ns", name, obj, None, context))
    if resource.has_generation:
        obj["metadata"]["generation"] = 1
    resource.strategy.prepare_for_create(obj, context)
    return normalised(resource, obj)


def refusals(errors: list[FieldError]) -> set[tuple[str, str]]:
    """What errors come to in a comparison: fields and reasons."""
    return {(error.path, error.reason.removeprefix("FieldValue")) for error in errors}
