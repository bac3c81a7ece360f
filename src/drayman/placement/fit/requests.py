"""What a pod requests of a node's resources, added up as Kubernetes does it.

Containers run together, so they add up. Init containers run one after the other, so the largest counts, together with the sidecars
(init containers that restart) that were started before it. What the pod as a whole asks for replaces the sum of its containers;
its overhead comes on top. The sums are exact and rounded up at the end: cpu to thousandths, everything else to units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from msgspec import Struct

from drayman.api.core import Container, Pod
from drayman.api.pods import is_sidecar
from drayman.api.quantity import Quantity

Amounts = dict[str, int]
_Exact = dict[str, int | Fraction]

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

# What scoring assumes for a container without requests, so that such pods do not all go to one node.
_UNSAID: Final[_Exact] = {CPU: Fraction(1, 10), MEMORY: 200 * 1024 * 1024}
_HUGE_PAGES: Final = "hugepages-"
_ATTACHABLE: Final = "attachable-volumes-"


class Requests(Struct, frozen=True):
    """The sums of a pod: what must fit, and the cpu and memory that scoring uses."""

    amounts: Amounts
    scoring_cpu: int
    scoring_memory: int
    pod_level: frozenset[str]
    """Resources that the pod as a whole asks for: what its devices take does not add to these."""


def requests_of(pod: Pod) -> Requests:
    """What a pod asks for, including the node resources that its claims have taken."""
    pod_level = _pod_level(pod)
    amounts = _total(pod, {}, pod_level)
    unsaid = _UNSAID
    if pod_level:
        unsaid = {name: amount for name, amount in _UNSAID.items() if name not in amounts}
    scoring = _whole(_total(pod, unsaid, pod_level)) if unsaid else _whole(amounts)
    return Requests(
        _whole(amounts), scoring.get(CPU, 0), scoring.get(MEMORY, 0), frozenset(pod_level)
    )


def whole_amounts(quantities: Mapping[str, Quantity]) -> Amounts:
    """Quantities in the units that their resources are counted in."""
    return _whole(_exact(quantities))


def in_units(name: str, amount: int | Fraction) -> int:
    """An amount of a resource in the units that it is counted in, rounded up: cpu in thousandths, everything else as it is."""
    return -(-(amount * 1000 if name == CPU else amount) // 1)


def is_counted(name: str) -> bool:
    """Whether a resource other than cpu, memory and storage is one that nodes can run out of."""
    return "/" in name or name.startswith((_HUGE_PAGES, _ATTACHABLE))


def _total(pod: Pod, unsaid: _Exact, pod_level: _Exact) -> _Exact:
    spec = pod.spec
    total = _running(spec.containers, unsaid)
    if spec.init_containers:
        _raise_to(total, _starting(spec.init_containers, total, unsaid))
    for status in pod.status.node_allocatable_resource_claim_statuses:
        _add(total, _exact(status.resources))
    total.update(pod_level)
    if spec.overhead:
        _add(total, _exact(spec.overhead))
    return total


def _running(containers: Iterable[Container], unsaid: _Exact) -> _Exact:
    total: _Exact = {}
    for container in containers:
        _add(total, _asked(container, unsaid))
    return total


def _starting(containers: Iterable[Container], total: _Exact, unsaid: _Exact) -> _Exact:
    """The most that is needed at once while init containers run. Sidecars are added to `total` too: they stay."""
    most: _Exact = {}
    sidecars: _Exact = {}
    for container in containers:
        asked = _asked(container, unsaid)
        if is_sidecar(container):
            _add(total, asked)
            _add(sidecars, asked)
            _raise_to(most, sidecars)
        else:
            _add(asked, sidecars)
            _raise_to(most, asked)
    return most


def _asked(container: Container, unsaid: _Exact) -> _Exact:
    amounts = _exact(container.resources.requests)
    for name, amount in unsaid.items():
        amounts.setdefault(name, amount)
    return amounts


def _pod_level(pod: Pod) -> _Exact:
    resources = pod.spec.resources
    if resources is None:
        return {}
    return {
        name: quantity.amount
        for name, quantity in resources.requests.items()
        if name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES)
    }


def _exact(quantities: Mapping[str, Quantity]) -> _Exact:
    return {name: quantity.amount for name, quantity in quantities.items()}


def _add(total: _Exact, more: _Exact) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: _Exact, least: _Exact) -> None:
    for name, amount in least.items():
        if total.get(name, -1) < amount:
            total[name] = amount


def _whole(amounts: _Exact) -> Amounts:
    return {name: in_units(name, amount) for name, amount in amounts.items()}
