"""Eviction: deletion of a pod if its disruption budget allows it.

The budget is charged and the pod marked in one transaction: a budget charged for a pod that stays would keep others from being
evicted until its controller notices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from drayman.api.codec import convert
from drayman.api.meta import LabelSelector
from drayman.api.pods import FINISHED
from drayman.apiserver.protocol.errors import (
    StatusCause,
    StatusError,
    Subject,
    bad_request,
    forbidden,
    internal,
)
from drayman.apiserver.protocol.exchange import Query
from drayman.apiserver.protocol.options import delete_options
from drayman.apiserver.requests.calls import Call, Result, success
from drayman.apiserver.served.encoding import decode, stored_form
from drayman.apiserver.served.resources import GroupVersionKind, Subresource
from drayman.apiserver.served.shaping import normalised
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.subresources.pods import pod_call, put, set_condition
from drayman.apiserver.verbs.batch import Batch
from drayman.apiserver.verbs.deleting import check_preconditions, remove
from drayman.cluster.embedded.model import Key, Put, Stored
from drayman.workloads.disruption import coverage

KIND: Final = GroupVersionKind("policy", "v1", "Eviction")
BUDGETS: Final = "poddisruptionbudgets.policy"
MOST_DISRUPTED: Final = 2000
"""Evictions that a budget records until its controller has confirmed them."""
_CONDITION: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_REFUSAL: Final = "Cannot evict pod as it would violate the pod's disruption budget."


async def evict(call: Call) -> Result:
    """`pods/NAME/eviction`."""
    eviction = call.body or {}
    if (eviction.get("metadata") or {}).get("name", "") != call.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = delete_options(Query(), eviction.get("deleteOptions") or {})
    options = replace(options, dry_run=options.dry_run or call.dry_run)
    batch = Batch(call.core.store)
    core = replace(call.core, store=batch)
    pods = replace(pod_call(call, call.name), core=core, verb="delete", delete=options)
    existing = pods.existing()
    if not _may_ignore_budgets(existing.value):
        await _spend_budget(pods, existing.value)
    await _delete(pods, existing)
    await batch.commit()
    return success(call.subject, 201)


def _may_ignore_budgets(pod: Object) -> bool:
    """Evicting a pod that is not running yet or any more disrupts nothing."""
    phase = (pod.get("status") or {}).get("phase", "Pending")
    return phase in (*FINISHED, "Pending") or "deletionTimestamp" in pod["metadata"]


async def _delete(call: Call, existing: Stored) -> None:
    check_preconditions(call, existing)
    if not call.delete.dry_run:
        pod = decode(existing.data)
        set_condition(pod, _CONDITION, call.context.now)
        write = put(call, normalised(call.resource, pod), existing)
        (existing,) = await call.core.store.write([write])
        call = replace(call, delete=replace(call.delete, resource_version=None))
    await remove(call, existing)


async def _spend_budget(call: Call, pod: Object) -> None:
    """Take one disruption off the pod's budget. Raises StatusError 429 where there is none left."""
    budgets = _budgets_of(call, pod)
    if len(budgets) > 1:
        raise internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if not budgets:
        return
    name = budgets[0]["metadata"]["name"]
    stored = call.core.store.latest(Key(BUDGETS, call.namespace, name))
    if stored is None:
        return
    budget = decode(stored.data)
    if not _is_ready(pod) and _allows_unready(budget):
        return
    _charge(budget, call)
    if call.delete.dry_run:
        return
    resource = call.core.resources.named("policy", "poddisruptionbudgets")
    assert resource is not None, "evictions are served beside budgets"
    encode = stored_form(normalised(resource, budget), resource.hub_kind)
    await call.core.store.write([Put(stored.key, encode, expected=stored.revision)])


def _budgets_of(call: Call, pod: Object) -> list[Object]:
    labels = pod["metadata"].get("labels") or {}
    found = []
    for budget in call.core.objects.list(BUDGETS, call.namespace):
        selector = (budget.get("spec") or {}).get("selector")
        covers = coverage(None if selector is None else convert(LabelSelector, selector))
        if covers(labels):
            found.append(budget)
    return found


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Ready" and c.get("status") == "True" for c in conditions)


def _allows_unready(budget: Object) -> bool:
    """A pod that is not ready does not count as healthy, so it may be evicted if enough others are."""
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    return bool(healthy >= desired > 0)


def _charge(budget: Object, call: Call) -> None:
    metadata, status, now = budget["metadata"], budget["status"], call.context.now
    name, allowed = metadata["name"], status.get("disruptionsAllowed", 0)
    subject = Subject("poddisruptionbudgets", "policy", name)
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, retry_after=10)
    if allowed < 0:
        raise forbidden(subject, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(subject, why)
    if allowed == 0:
        needed, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _too_many(
            f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
        )
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), call.name: now}
    if allowed == 1:
        _note_exhaustion(status, metadata, now)


def _note_exhaustion(status: Object, metadata: Object, now: str) -> None:
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": metadata.get("generation", 0),
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    }
    others = [c for c in status.get("conditions") or [] if c["type"] != condition["type"]]
    status["conditions"] = [*others, condition]


def _too_many(why: str, retry_after: int = 0) -> StatusError:
    causes = [StatusCause("DisruptionBudget", why)]
    return StatusError(
        429, "TooManyRequests", _REFUSAL, Subject(), causes, retry_after_seconds=retry_after
    )


EVICTION: Final = Subresource(
    name="eviction", verbs=("create",), kind=KIND, handlers={"create": evict}
)
