"""Binding: how a scheduler assigns a pod to a node."""

from __future__ import annotations

from typing import Final

from drayman.apiserver.protocol.errors import Subject, bad_request, conflict, internal
from drayman.apiserver.requests.calls import Call, Result, success
from drayman.apiserver.served.acting import Part, by
from drayman.apiserver.served.resources import ApiResource, GroupVersionKind, Subresource
from drayman.apiserver.served.shaping import in_order, message_at, message_of
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.subresources.pods import pod_call, put, set_condition
from drayman.apiserver.verbs.updating import precondition_text
from drayman.cluster.embedded.model import Stored

KIND: Final = GroupVersionKind("", "v1", "Binding")
_POD: Final = GroupVersionKind("", "v1", "Pod")
INIT_ANNOTATIONS: Final = (
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-containers",
)


async def bind(call: Call) -> Result:
    """`pods/NAME/binding`."""
    binding = call.body or {}
    name = (binding.get("metadata") or {}).get("name", "")
    if name != call.name:
        raise bad_request("name in URL does not match name in Binding object")
    return await _bind(pod_call(call, name), binding)


async def bind_by_body(call: Call) -> Result:
    """`bindings`, the older place, where only the body names the pod."""
    binding = call.body or {}
    name = (binding.get("metadata") or {}).get("name", "")
    return await _bind(pod_call(call, name), binding)


async def bind_to(call: Call, node: str, uid: str) -> Result:
    """The same for a client in this process, with a call about the pod."""
    return await _bind(call, {"metadata": {"uid": uid}, "target": {"name": node}})


async def _bind(call: Call, binding: Object) -> Result:
    target = binding.get("target") or {}
    _check_target(target)
    existing = call.existing()
    _check_preconditions(call, existing, binding["metadata"])
    _check_pod(existing.value, call.name)
    pod = _assigned(existing.value, target["name"], binding["metadata"], call.context.now)
    if not call.dry_run:
        await call.core.store.write([put(call, pod, existing)])
    return success(call.subject, 201)


def _check_target(target: Object) -> None:
    """The real server answers these with 500 and no reason."""
    kind = target.get("kind", "")
    problems = []
    if kind not in ("", "Node"):
        problems.append(
            f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        )
    if not target.get("name"):
        problems.append("target.name: Required value")
    if problems:
        raise internal(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _check_preconditions(call: Call, existing: Stored, metadata: Object) -> None:
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    found = existing.value["metadata"]["uid"]
    if uid and uid != found:
        raise conflict(call.subject, precondition_text(call, "UID", uid, found))
    if version and version != str(existing.revision):
        text = precondition_text(call, "ResourceVersion", version, str(existing.revision))
        raise conflict(call.subject, text)


def _check_pod(pod: Object, name: str) -> None:
    subject = Subject("pods/binding", "", name)
    if "deletionTimestamp" in pod["metadata"]:
        raise conflict(subject, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := pod["spec"].get("nodeName"):
        raise conflict(subject, f'pod {name} is already assigned to node "{node}"')
    if pod["spec"].get("schedulingGates"):
        raise conflict(subject, f"pod {name} has non-empty .spec.schedulingGates")


def _assigned(pod: Object, node: str, given: Object, now: str) -> Object:
    """A copy of a pod with its node, sharing what does not change."""
    metadata, status = dict(pod["metadata"]), dict(pod["status"])
    status.pop("nominatedNodeName", None)
    for name in ("labels", "annotations"):
        if given.get(name):
            metadata[name] = {**(metadata.get(name) or {}), **given[name]}
    if any(name in (metadata.get("annotations") or {}) for name in INIT_ANNOTATIONS):
        kept = {k: v for k, v in metadata["annotations"].items() if k not in INIT_ANNOTATIONS}
        metadata["annotations"] = kept
    spec = in_order(message_at(message_of(_POD), "spec"), {**pod["spec"], "nodeName": node})
    bound = {**pod, "metadata": metadata, "spec": spec, "status": status}
    set_condition(bound, {"type": "PodScheduled", "status": "True"}, now)
    bound["status"] = in_order(message_at(message_of(_POD), "status"), bound["status"])
    return bound


BINDING: Final = Subresource(
    name="binding", verbs=("create",), kind=KIND, handlers={"create": bind}
)
BINDINGS: Final = ApiResource(
    kind="Binding",
    acting=by(Part.SERVER, effect="the pod gets its node"),
    verbs=("create",),
    create_handler=bind_by_body,
)
