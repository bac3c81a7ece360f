"""Scale: the number of replicas of an object as a separate object, for tools that know nothing else about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from drayman.api.errors import BodyError
from drayman.api.schema import decode_strict
from drayman.api.struct import Json
from drayman.api.validation.field_errors import invalid as invalid_field
from drayman.apiserver.patching.builtin_shapes import shape_of, zero_of
from drayman.apiserver.patching.field_manager import FieldManager
from drayman.apiserver.patching.field_set import named_path
from drayman.apiserver.patching.scaling import ScaleOwnership
from drayman.apiserver.patching.versions import Versions
from drayman.apiserver.protocol.errors import Subject, bad_request, conflict, invalid
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.served.resources import GroupVersionKind, Subresource
from drayman.apiserver.served.shaping import message_of
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.metadata import NAMESPACE_MISMATCH, check_name
from drayman.apiserver.verbs.patches import APPLY, patched_value
from drayman.apiserver.verbs.updating import check_uid, plan_replacement
from drayman.cluster.embedded.model import Delete, Stored

KIND: Final = GroupVersionKind("autoscaling", "v1", "Scale")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where an object keeps what a Scale shows. The selector is a text, or read by a function."""

    replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    selector: Callable[[Object], str] = lambda obj: selector_text(
        (obj.get("spec") or {}).get("selector")
    )


WORKLOAD_PATHS: Final = ScalePaths()


def scale_subresource(paths: ScalePaths = WORKLOAD_PATHS) -> Subresource:
    """The scale of a resource that keeps its numbers at these paths."""
    scale = _Scale(paths)
    handlers = {"get": scale.get, "update": scale.update, "patch": scale.patch}
    return Subresource(name="scale", kind=KIND, handlers=handlers)


@dataclass(frozen=True, slots=True)
class _Scale:
    paths: ScalePaths

    async def get(self, call: Call) -> Result:
        return Result(value=self._shown(call.existing()))

    async def update(self, call: Call) -> Result:
        existing = call.existing()
        sent: Object = call.body or {}
        metadata = sent.get("metadata") or {}
        check_name(call, metadata)
        if metadata.get("namespace", call.namespace) != call.namespace:
            raise bad_request(NAMESPACE_MISMATCH)
        check_uid(call, existing, metadata.get("uid"))
        return await self._write(call, existing, sent)

    async def patch(self, call: Call) -> Result:
        existing = call.existing()
        assert call.patch is not None
        media, change = call.patch.media_type, call.patch.change
        shown = self._shown(existing)
        if media == APPLY:
            return await self._apply(call, existing, change)
        value = patched_value(lambda: message_of(KIND), media, shown, change)
        try:
            sent, _ = decode_strict(message_of(KIND), value)
        except BodyError as error:
            raise invalid(Subject(), [invalid_field("patch", value, str(error))]) from error
        return await self._write(call, existing, sent)

    async def _apply(self, call: Call, existing: Stored, change: Json) -> Result:
        live = {**self._shown(existing), "apiVersion": KIND.api_version}
        owners = self._ownership(call)
        parent_entries = existing.value["metadata"].get("managedFields")
        live["metadata"] = {**live["metadata"], "managedFields": owners.to_scale(parent_entries)}
        applied = _manager().apply(
            live,
            change,
            call.write.field_manager,
            force=call.write.force,
            now=call.context.now,
            subresource="scale",
        )
        entries = owners.to_parent(parent_entries, applied["metadata"].get("managedFields"))
        return await self._write(call, existing, applied, entries)

    async def _write(
        self, call: Call, existing: Stored, sent: Object, entries: list[Object] | None = None
    ) -> Result:
        """Give the parent the requested number of replicas, and return the resulting Scale."""
        replicas: int = (sent.get("spec") or {}).get("replicas", 0)
        version = (sent.get("metadata") or {}).get("resourceVersion", "")
        if version not in ("", str(existing.revision)):
            raise conflict(call.subject)
        if replicas < 0:
            error = invalid_field("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid(Subject("Scale", KIND.group, call.name), [error])
        before = self._shown(existing)

        def change(obj: Object) -> Object:
            _put(obj, self.paths.replicas, replicas)
            noted = self._noted(call, existing, before, replicas) if entries is None else entries
            obj["metadata"].pop("managedFields", None)
            if noted:
                obj["metadata"]["managedFields"] = noted
            return obj

        parent = replace(call, subresource=None)
        return Result(value=self._shown(await _replaced(parent, existing, change)))

    def _noted(self, call: Call, existing: Stored, before: Object, replicas: int) -> list[Object]:
        """The parent's managedFields after a write to its Scale."""
        owners = self._ownership(call)
        parent_entries = existing.value["metadata"].get("managedFields")
        entries = owners.to_scale(parent_entries)
        old = {**before, "metadata": {**before["metadata"], "managedFields": entries}}
        new = {**old, "spec": {"replicas": replicas}}
        manager, now = call.write.field_manager, call.context.now
        noted = _manager().update(old, new, manager, now, "scale")
        return owners.to_parent(parent_entries, noted["metadata"].get("managedFields"))

    def _ownership(self, call: Call) -> ScaleOwnership:
        path = named_path(*self.paths.replicas)
        versions = call.resource.versions
        paths = {call.resource.kind_in(version).api_version: path for version in versions}
        return ScaleOwnership(call.resource.kind_in(call.version).api_version, paths)

    def _shown(self, stored: Stored) -> Object:
        obj = stored.value
        kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        replicas, selector = _at(obj, self.paths.replicas), self.paths.selector(obj)
        spec: Object = {"replicas": replicas} if replicas else {}
        status: Object = {"replicas": _at(obj, self.paths.status_replicas) or 0}
        if selector:
            status["selector"] = selector
        return {
            "kind": KIND.kind,
            "apiVersion": KIND.api_version,
            "metadata": {name: obj["metadata"][name] for name in kept if name in obj["metadata"]},
            "spec": spec,
            "status": status,
        }


async def _replaced(call: Call, existing: Stored, change: Callable[[Object], Object]) -> Stored:
    _, operations = plan_replacement(call, existing, lambda _, obj: change(obj), owns=False)
    if not operations:
        return existing
    if call.dry_run or isinstance(operations[0], Delete):
        encode = operations[0].encode
        return Stored(call.key, existing.revision, encode(existing.revision))
    (stored,) = await call.core.store.write(operations)
    return stored


def _manager() -> FieldManager:
    message = message_of(KIND)
    empty = {**zero_of(message), "apiVersion": KIND.api_version, "kind": KIND.kind}
    versions = Versions({KIND.api_version: shape_of(message)})
    return FieldManager(KIND.api_version, KIND.kind, versions, empty)


def _at(obj: Mapping[str, Json], path: tuple[str, ...]) -> Json:
    value: Json = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _put(obj: Object, path: tuple[str, ...], value: Json) -> None:
    for name in path[:-1]:
        obj = obj.setdefault(name, {})
    obj[path[-1]] = value


def selector_text(selector: Json) -> str:
    """A label selector as one string. Plain maps, as in replication controllers, count as labels to match."""
    if not isinstance(selector, dict):
        return selector if isinstance(selector, str) else ""
    is_plain = not selector.keys() & {"matchLabels", "matchExpressions"}
    labels = selector if is_plain else selector.get("matchLabels") or {}
    terms = [(key, f"{key}={value}") for key, value in labels.items()]
    for expression in () if is_plain else selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        texts = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "DoesNotExist": f"!{key}",
        }
        terms.append((key, texts.get(expression["operator"], key)))
    return ",".join(text for _, text in sorted(terms))
