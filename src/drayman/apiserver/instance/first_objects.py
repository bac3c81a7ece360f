"""What a cluster contains before users create anything: namespaces, two priority classes, the first roles and definitions."""

from __future__ import annotations

from typing import Final

from drayman.api.volume_binding import DEFAULT_CLASS, WAIT_FOR_CONSUMER
from drayman.apiserver.extensions.builtin import builtin_definitions
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.security.bootstrap import bootstrap_objects, completed
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import Core
from drayman.apiserver.verbs.creating import create
from drayman.apiserver.verbs.updating import Change, replace
from drayman.cluster.options import WriteOptions

NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_MANAGER: Final = "drayman"


def _critical(name: str, value: int, used_for: str) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": used_for,
    }


PRIORITY_CLASSES: Final = (
    _critical("system-cluster-critical", 2_000_000_000, "For pods the cluster cannot do without."),
    _critical("system-node-critical", 2_000_001_000, "For pods a node cannot do without."),
)


STANDARD_CLASS: Final[Object] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}},
    "provisioner": "volumes.drayman.dev/simulated",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": WAIT_FOR_CONSUMER,
}
"""The class of claims that name none, as in other clusters for local use."""


async def create_standard_class(core: Core) -> None:
    """For a new cluster with controllers, which simulate its volumes. If deleted, it is not created again."""
    await _create(core, STANDARD_CLASS)


async def create_builtin_definitions(core: Core, only: str = "") -> None:
    """Create those that are missing, or the one of this name. Ones that a user installed are not changed."""
    for obj in builtin_definitions():
        if only in ("", obj["metadata"]["name"]):
            await _create(core, obj)


async def create_first_objects(core: Core) -> None:
    """Create what is missing. Of the existing objects, only the first roles and their bindings are completed."""
    for name in NAMESPACES:
        await _create(core, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for obj in PRIORITY_CLASSES:
        await _create(core, obj)
    for obj in bootstrap_objects():
        if not await _create(core, obj):
            call = _call(core, obj, "update")
            existing = core.store.latest(call.key)
            assert existing is not None
            await replace(call, existing, _completion(obj))


def _completion(wanted: Object) -> Change:
    return lambda _, found: completed(found, wanted)


async def _create(core: Core, obj: Object) -> bool:
    """Create an object; False if it exists."""
    call = _call(core, obj, "create")
    if core.store.latest(call.key) is not None:
        return False
    await create(call)
    return True


def _call(core: Core, obj: Object, verb: str) -> Call:
    group, _, version = obj["apiVersion"].rpartition("/")
    resource = core.resources.find_kind(group, version, obj["kind"])
    if resource is None:
        raise LookupError(f"{obj['kind']} in {obj['apiVersion']} is not served")
    return Call(
        core,
        resource,
        version,
        verb,
        name=obj["metadata"]["name"],
        body=obj,
        write=WriteOptions(field_manager=_MANAGER),
    )
