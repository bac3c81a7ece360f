"""Admission for built-in kinds: rules for writes that depend on other objects.

In the order they run: the limits of the namespace, the priority of a pod and of groups of pods, the cost of its runtime, the taint a
new node starts with, the taints a pod tolerates by default, the class of a claim for a volume, and Pod Security Standards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api.codec import convert
from drayman.api.meta import ObjectMeta
from drayman.api.node_taints import NOT_READY, UNREACHABLE
from drayman.api.pod_security import PodSecuritySettings
from drayman.api.pods import FINISHED
from drayman.api.quantity import Quantity
from drayman.api.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec, StorageClass
from drayman.api.struct import Json
from drayman.api.volume_binding import default_class, names_no_class
from drayman.apiserver.kinds.leases import overhead_of
from drayman.apiserver.kinds.limit_ranges import LimitRanges
from drayman.apiserver.kinds.pod_security import PodSecurity
from drayman.apiserver.kinds.pods.resources import parse_amounts
from drayman.apiserver.kinds.policy import PREEMPT, SYSTEM_CLASSES
from drayman.apiserver.kinds.reading import at, items_at, map_at, member, text_at
from drayman.apiserver.protocol.errors import StatusError, forbidden
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted

_GRACE_S: Final = 300
PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
STORAGE_CLASSES: Final = "storageclasses.storage.k8s.io"
SYSTEM: Final = "kube-system"
_CLASS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "pods": ("spec", "priorityClassName"),
    "podgroups.scheduling.k8s.io": ("spec", "priorityClassName"),
    "workloads.kueue.x-k8s.io": ("spec", "priorityClassRef", "name"),
}
"""Kinds with a priority of their own, with the name of its class."""
RUNTIME_CLASSES: Final = "runtimeclasses.node.k8s.io"


def _is_written(write: Admitted, resource: str) -> bool:
    """Whether an object is created or replaced, other than through one of its subresources."""
    return (
        write.operation in ("CREATE", "UPDATE")
        and not write.subresource
        and write.resource.storage_name == resource
    )


def _is_new(write: Admitted, resource: str) -> bool:
    return write.operation == "CREATE" and _is_written(write, resource)


def _refuse(write: Admitted, why: str) -> StatusError:
    return forbidden(write.resource.subject(write.name), why)


class Priority(AdmissionPlugin):
    """Turns the name of a priority class into a number. A pod may not choose the number itself."""

    def admit(self, write: Admitted) -> None:
        if _is_new(write, "pods") and write.new is not None:
            self._resolve_pod(write, member(write.new, "spec"))
        elif _is_written(write, "pods") and write.new is not None and write.old is not None:
            _keep_priority(member(write.new, "spec"), map_at(write.old, "spec"))
        elif _is_new(write, "podgroups.scheduling.k8s.io") and write.new is not None:
            self._resolve_group(write, member(write.new, "spec"))

    def validate(self, write: Admitted) -> None:
        """Refuse the classes of the system where only work of tenants belongs: its pods would displace those of everyone else."""
        named = _CLASS_OF.get(write.resource.storage_name)
        if named is None or write.new is None or write.subresource or write.namespace == SYSTEM:
            return
        name = text_at(write.new, *named)
        if name in SYSTEM_CLASSES and (write.old is None or text_at(write.old, *named) != name):
            _check_covered(write, name)

    def _resolve_pod(self, write: Admitted, spec: Object) -> None:
        priority, policy = self._chosen(write, spec)
        _set(write, spec, "priority", priority, "integer value of priority", "pod spec")
        what = "string value of PreemptionPolicy"
        _set(write, spec, "preemptionPolicy", policy, what, "pod spec")

    def _resolve_group(self, write: Admitted, spec: Object) -> None:
        priority, _policy = self._chosen(write, spec)
        _set(write, spec, "priority", priority, "integer value of priority", "pod group spec")

    def _chosen(self, write: Admitted, spec: Object) -> tuple[int, str]:
        """The priority and preemption policy of the class named, or of the default one."""
        name = text_at(spec, "priorityClassName")
        if not name:
            default = self._default_class(write)
            if default is None:
                return 0, PREEMPT
            spec["priorityClassName"] = text_at(default, "metadata", "name")
            return _terms(default)
        found = write.context.objects.get(PRIORITY_CLASSES, "", name)
        if found is not None:
            return _terms(found)
        if name in SYSTEM_CLASSES:
            return SYSTEM_CLASSES[name], PREEMPT
        raise _refuse(write, f"no PriorityClass with name {name} was found")

    @staticmethod
    def _default_class(write: Admitted) -> Object | None:
        """The lowest of several defaults counts."""
        defaults = [
            c for c in write.context.objects.list(PRIORITY_CLASSES) if c.get("globalDefault")
        ]
        return min(defaults, key=lambda c: c.get("value") or 0, default=None)


def _check_covered(write: Admitted, name: str) -> None:
    """Raises StatusError unless a ResourceQuota of the namespace gives it pods of a class of the system, and not all of them exist.

    This is what kube-apiserver does if its configuration limits these classes. Nothing else of ResourceQuotas is enforced here.
    """
    quotas = write.context.objects.list("resourcequotas", write.namespace)
    covering = [quota for quota in quotas if _covers_class(quota, name)]
    if not covering:
        shown = " ".join(sorted(SYSTEM_CLASSES))
        why = f"insufficient quota to match these scopes: [{{PriorityClass In [{shown}]}}]"
        raise _refuse(write, why)
    if write.resource.storage_name != "pods":
        return
    pods = write.context.objects.list("pods", write.namespace)
    living = [pod for pod in pods if text_at(pod, "status", "phase") not in FINISHED]
    for quota in covering:
        used = sum(_covers_class(quota, text_at(p, "spec", "priorityClassName")) for p in living)
        limit = parse_amounts(map_at(quota, "spec", "hard"))["pods"]
        if limit < Quantity(used + 1):
            quota_name = text_at(quota, "metadata", "name")
            counts = f"requested: pods=1, used: pods={used}, limited: pods={limit}"
            raise _refuse(write, f"exceeded quota: {quota_name}, {counts}")


def _covers_class(quota: Object, name: str) -> bool:
    """Whether a quota limits the number of pods of a priority class by name."""
    terms = items_at(quota, "spec", "scopeSelector", "matchExpressions")
    if "pods" not in map_at(quota, "spec", "hard") or not terms:
        return False
    return all(_matches_class(term, name) for term in terms)


def _matches_class(term: Json, name: str) -> bool:
    if text_at(term, "scopeName") != "PriorityClass":
        return False
    match text_at(term, "operator"):
        case "In":
            return name in items_at(term, "values")
        case "NotIn":
            return bool(name) and name not in items_at(term, "values")
        case operator:
            return bool(name) == (operator == "Exists")


def _set(write: Admitted, spec: Object, name: str, value: Json, what: str, where: str) -> None:
    """Set what follows from the priority class. A client may give nothing else."""
    given = spec.get(name)
    if given is not None and given != value:
        raise _refuse(
            write,
            f"the {what} ({given}) must not be provided in {where};"
            f" priority admission controller computed {value} from the given PriorityClass name",
        )
    spec[name] = value


def _terms(priority_class: Object) -> tuple[int, str]:
    return priority_class.get("value") or 0, priority_class.get("preemptionPolicy") or PREEMPT


def _keep_priority(spec: Object, before: Object) -> None:
    """An update that omits what the server has computed keeps it."""
    for name in ("priority", "preemptionPolicy"):
        if spec.get(name) is None and name in before:
            spec[name] = before[name]


class RuntimeOverhead(AdmissionPlugin):
    """Adds what the pod's runtime class costs and demands. A pod cannot set this cost itself."""

    def admit(self, write: Admitted) -> None:
        if not _is_new(write, "pods") or write.new is None:
            return
        spec = member(write.new, "spec")
        name = spec.get("runtimeClassName")
        runtime = None
        if name:
            runtime = write.context.objects.get(RUNTIME_CLASSES, "", name)
            if runtime is None:
                raise _refuse(write, f'pod rejected: RuntimeClass "{name}" not found')
        cost = overhead_of(runtime) if runtime is not None else {}
        self._set_overhead(write, spec, cost)
        if runtime is not None:
            _merge_scheduling(write, spec, map_at(runtime, "scheduling"))

    @staticmethod
    def _set_overhead(write: Admitted, spec: Object, cost: Object) -> None:
        own = spec.get("overhead")
        if own and not cost:
            why = (
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
            raise _refuse(write, why)
        if own and parse_amounts(own) != parse_amounts(cost):
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise _refuse(write, why)
        if cost:
            spec["overhead"] = dict(cost)


def _merge_scheduling(write: Admitted, spec: Object, scheduling: Object) -> None:
    selector = map_at(scheduling, "nodeSelector")
    if selector:
        own = map_at(spec, "nodeSelector")
        if any(key in own and own[key] != value for key, value in selector.items()):
            why = "pod rejected: conflict: runtimeClass.scheduling.nodeSelector is inconsistent with pod.spec.nodeSelector"
            raise _refuse(write, why)
        spec["nodeSelector"] = {**own, **selector}
    for toleration in items_at(scheduling, "tolerations"):
        if toleration not in items_at(spec, "tolerations"):
            spec["tolerations"] = [*items_at(spec, "tolerations"), toleration]


class DefaultTolerations(AdmissionPlugin):
    """Pods tolerate a node that is unavailable for a while, unless they say otherwise."""

    def admit(self, write: Admitted) -> None:
        if not _is_written(write, "pods") or write.new is None:
            return
        spec = member(write.new, "spec")
        tolerations = items_at(spec, "tolerations")
        for key in (NOT_READY, UNREACHABLE):
            if not any(_covers(toleration, key) for toleration in tolerations):
                added = {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _GRACE_S,
                }
                tolerations = [*tolerations, added]
        spec["tolerations"] = tolerations


def _covers(toleration: Json, key: str) -> bool:
    return text_at(toleration, "key") in (key, "") and text_at(toleration, "effect") in (
        "NoExecute",
        "",
    )


class TaintNewNodes(AdmissionPlugin):
    """A node takes no pods until it is reported ready."""

    def admit(self, write: Admitted) -> None:
        if not _is_new(write, "nodes") or write.new is None:
            return
        spec = member(write.new, "spec")
        taints = items_at(spec, "taints")
        if not any(at(t, "key") == NOT_READY and at(t, "effect") == "NoSchedule" for t in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]


class DefaultStorageClass(AdmissionPlugin):
    """Claims for volumes that name no class get the default one, where there is one."""

    def admit(self, write: Admitted) -> None:
        if not _is_new(write, "persistentvolumeclaims") or write.new is None:
            return
        # Not the whole object: the rest of it is not yet checked.
        named = PersistentVolumeClaimSpec(
            storage_class_name=at(write.new, "spec", "storageClassName")
        )
        metadata = ObjectMeta(annotations=map_at(write.new, "metadata", "annotations"))
        if not names_no_class(PersistentVolumeClaim(metadata=metadata, spec=named)):
            return
        listed = write.context.objects.list(STORAGE_CLASSES)
        chosen = default_class([convert(StorageClass, each) for each in listed])
        if chosen is not None:
            member(write.new, "spec")["storageClassName"] = chosen.metadata.name


def admission_plugins(pod_security: PodSecuritySettings | None = None) -> list[AdmissionPlugin]:
    """The plug-ins in order."""
    return [
        LimitRanges(),
        Priority(),
        RuntimeOverhead(),
        TaintNewNodes(),
        DefaultTolerations(),
        DefaultStorageClass(),
        PodSecurity(pod_security or PodSecuritySettings()),
    ]
