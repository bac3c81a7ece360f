"""Kueue's objects between v1beta1 and v1beta2, in which they are stored.

Fields were renamed and moved, and two words of the flavor policy became one. Each step below does nothing where its source is absent, so
a part that is already in the newer form stays as it is: an update in the old version brings a status that the server kept in the new one.
What the newer version cannot say (`pendingWorkloadsStatus` of queues, `flavors` of local queues, the back-off of a check) is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.extensions.kueue.assignments import as_domains, as_slices
from drayman.apiserver.kinds.reading import items_at, map_at
from drayman.apiserver.served.strategy import Object

OLD: Final = "v1beta1"
NEW: Final = "v1beta2"
STOP_SEARCH: Final = "MayStopSearch"
_WORKLOAD_CLASS: Final = ("kueue.x-k8s.io", "WorkloadPriorityClass")
_POD_CLASS: Final = ("scheduling.k8s.io", "PriorityClass")
_SOURCES: Final = {
    "kueue.x-k8s.io/workloadpriorityclass": _WORKLOAD_CLASS,
    "scheduling.k8s.io/priorityclass": _POD_CLASS,
}
_SOURCE_OF: Final = {group: source for source, (group, _) in _SOURCES.items()}

Step = Callable[[Object], None]
"""Changes an object in place, which nobody else holds."""


def _rename(part: Json, before: str, after: str) -> None:
    """Unless there is a member of the new name, which then is what the object says."""
    if isinstance(part, dict) and before in part and after not in part:
        part[after] = part.pop(before)


def _translate(part: Json, name: str, words: Mapping[str, str]) -> None:
    if isinstance(part, dict) and isinstance(part.get(name), str):
        part[name] = words.get(part[name], part[name])


def _cluster_queue_to_new(obj: Object) -> None:
    spec = map_at(obj, "spec")
    _rename(spec, "cohort", "cohortName")
    names = spec.get("admissionChecks")
    if isinstance(names, list) and not spec.get("admissionChecksStrategy"):
        del spec["admissionChecks"]
        if names:
            spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": n} for n in names]}
    policy = spec.get("flavorFungibility")
    _translate(policy, "whenCanBorrow", {"Borrow": STOP_SEARCH})
    _translate(policy, "whenCanPreempt", {"Preempt": STOP_SEARCH})
    map_at(obj, "status").pop("pendingWorkloadsStatus", None)


def _cluster_queue_to_old(obj: Object) -> None:
    spec = map_at(obj, "spec")
    _rename(spec, "cohortName", "cohort")
    policy = spec.get("flavorFungibility")
    _translate(policy, "whenCanBorrow", {STOP_SEARCH: "Borrow"})
    _translate(policy, "whenCanPreempt", {STOP_SEARCH: "Preempt"})


def _cohort_to_new(obj: Object) -> None:
    _rename(obj.get("spec"), "parent", "parentName")


def _local_queue_to_new(obj: Object) -> None:
    status = obj.get("status")
    _rename(status, "flavorUsage", "flavorsUsage")
    map_at(obj, "status").pop("flavors", None)


def _local_queue_to_old(obj: Object) -> None:
    _rename(obj.get("status"), "flavorsUsage", "flavorUsage")


def _workload_to_new(obj: Object) -> None:
    spec, status = map_at(obj, "spec"), map_at(obj, "status")
    name, source = spec.get("priorityClassName"), spec.get("priorityClassSource")
    if name and "priorityClassRef" not in spec:
        group, kind = _SOURCES.get(str(source or ""), _POD_CLASS)
        spec["priorityClassRef"] = {"group": group, "kind": kind, "name": name}
    for old in ("priorityClassName", "priorityClassSource"):
        spec.pop(old, None)
    _rename(status, "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds")
    for assignment in items_at(status, "admission", "podSetAssignments"):
        if isinstance(assignment, dict) and "domains" in map_at(assignment, "topologyAssignment"):
            assignment["topologyAssignment"] = as_slices(assignment["topologyAssignment"])


def _workload_to_old(obj: Object) -> None:
    spec, status = map_at(obj, "spec"), map_at(obj, "status")
    reference = map_at(spec, "priorityClassRef")
    if reference:
        spec["priorityClassName"] = reference.get("name")
        source = _SOURCE_OF.get(str(reference.get("group")))
        if source is not None:
            spec["priorityClassSource"] = source
    spec.pop("priorityClassRef", None)
    _rename(status, "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
    for assignment in items_at(status, "admission", "podSetAssignments"):
        if isinstance(assignment, dict) and "slices" in map_at(assignment, "topologyAssignment"):
            assignment["topologyAssignment"] = as_domains(assignment["topologyAssignment"])


def _check_to_new(obj: Object) -> None:
    map_at(obj, "spec").pop("retryDelayMinutes", None)


def _cluster_to_new(obj: Object) -> None:
    spec = map_at(obj, "spec")
    if "kubeConfig" in spec and "clusterSource" not in spec:
        spec["clusterSource"] = {"kubeConfig": spec.pop("kubeConfig")}


def _cluster_to_old(obj: Object) -> None:
    spec = map_at(obj, "spec")
    if "kubeConfig" in map_at(spec, "clusterSource"):
        spec["kubeConfig"] = spec.pop("clusterSource")["kubeConfig"]


def _as_it_is(_obj: Object) -> None:
    return


STEPS: Final[Mapping[str, tuple[Step, Step]]] = {
    "clusterqueues": (_cluster_queue_to_new, _cluster_queue_to_old),
    "cohorts": (_cohort_to_new, _as_it_is),
    "localqueues": (_local_queue_to_new, _local_queue_to_old),
    "workloads": (_workload_to_new, _workload_to_old),
    "admissionchecks": (_check_to_new, _as_it_is),
    "multikueueclusters": (_cluster_to_new, _cluster_to_old),
}
"""To the new version and to the old one, by the plural of the kind. The other kinds are the same in both."""
