"""Writes to pods by the server itself, which bypass the rules of updates."""

from __future__ import annotations

from dataclasses import replace

from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.encoding import stored_form
from drayman.apiserver.served.strategy import Object
from drayman.cluster.embedded.model import Put, Stored


def pod_call(call: Call, name: str) -> Call:
    """A call about the pod that a binding or an eviction names."""
    resource = call.core.resources.find("", "v1", "pods")
    assert resource is not None, "bindings and evictions are served beside pods"
    return replace(call, resource=resource, version="v1", name=name, subresource=None)


def put(call: Call, obj: Object, existing: Stored) -> Put:
    """The write that replaces an object."""
    return Put(call.key, stored_form(obj, call.resource.hub_kind), expected=existing.revision)


def set_condition(obj: Object, condition: Object, now: str) -> None:
    """Put a condition on a pod; the transition time is kept if the status was the same before."""
    status = obj["status"] = dict(obj.get("status") or {})
    conditions = list(status.get("conditions") or [])
    wanted = {**condition, "lastProbeTime": None, "lastTransitionTime": now}
    for index, found in enumerate(conditions):
        if found["type"] == condition["type"]:
            if found.get("status") == condition["status"]:
                wanted["lastTransitionTime"] = found.get("lastTransitionTime")
            conditions[index] = wanted
            break
    else:
        conditions.append(wanted)
    status["conditions"] = conditions
