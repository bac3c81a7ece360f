"""Processors, memory, ports: asking for what some node still has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final

from msgspec import Struct

from drayman.api.core import Container
from drayman.api.quantity import Format, Quantity
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Case
from drayman.explain.remedies.patching import Patch, Step, cut, put
from drayman.placement.fit import FITS
from drayman.placement.fit.requests import CPU, MEMORY, STORAGE, in_units
from drayman.placement.nodes import NodeState
from drayman.reasons.wording import and_list

_MOST_NODES: Final = 6
_MIB: Final = 1 << 20
_MILLI: Final = 1000


class _Room(Struct, frozen=True):
    """What a node has left of the resources of which it has too little."""

    node: NodeState
    left: Mapping[str, int]
    reduction: Fraction
    """How much of what the pod asks for would have to go, as a share, summed up."""


def lower_requests(case: Case) -> Iterator[Remedy]:
    """The resources of which a pod asks for more than any node has left, lowered to what one has: the least reduction first."""
    rooms = [room for node in case.nodes if (room := _room(case, node)) is not None]
    rooms.sort(key=lambda room: (room.reduction, room.node.index))
    for room in rooms[:_MOST_NODES]:
        changes = [_lowering(case, name, left) for name, left in room.left.items()]
        found = [change for change in changes if change is not None]
        if len(found) < len(changes):
            continue
        steps = (step for patch, _ in found for step in patch)
        sentence = f"ask for {and_list([words for _, words in found])}"
        yield from case.with_pod(sentence, *steps, nodes=[room.node])


def lower_extended(case: Case) -> Iterator[Remedy]:
    """Fewer devices for a pod that asks for them as an extended resource."""
    for name in case.demand.extended:
        for group, index, container in _containers(case):
            asked = container.resources.requests.get(name)
            count = 0 if asked is None else asked.rounded_up()
            for less in range(count - 1, 0, -1):
                patch = _set(group, index, container, name, str(less))
                sentence = f"ask for {less} instead of {count} {name} in container {container.name}"
                found = next(case.with_pod(sentence, *patch), None)
                if found is not None:
                    yield found
                    break


def dropped_ports(case: Case) -> Iterator[Remedy]:
    """Node ports that the pod could do without."""
    for group, index, container in _containers(case):
        for number, port in enumerate(container.ports):
            if port.host_port:
                sentence = f"do without host port {port.host_port} in container {container.name}"
                path = ("spec", group, index, "ports", number, "hostPort")
                yield from case.with_pod(sentence, cut(*path))


def _room(case: Case, node: NodeState) -> _Room | None:
    """What a node has too little of, if that is what keeps the pod away."""
    needs, shape, usage = case.demand.needs, node.facts.shape, node.usage
    pod = needs.shape
    if case.state.static_verdicts.verdict(needs, node.facts) is not FITS:
        return None
    delegated = case.demand.delegated_on(node.facts)
    amounts = [
        (CPU, pod.cpu, shape.cpu - usage.cpu),
        (MEMORY, pod.memory, shape.memory - usage.memory),
        (STORAGE, pod.storage, shape.storage - usage.storage),
    ]
    amounts += [
        (name, amount, shape.extended.get(name, 0) - usage.extended.get(name, 0))
        for name, amount in pod.extended
        if name not in delegated
    ]
    short = {name: _rounded(name, left) for name, asked, left in amounts if asked > left}
    if not short or len(usage.pods) >= shape.pods or any(left <= 0 for left in short.values()):
        return None
    asked = {name: amount for name, amount, _ in amounts}
    reduction = sum((Fraction(asked[n] - left, asked[n]) for n, left in short.items()), Fraction())
    return _Room(node, short, reduction)


def _rounded(name: str, left: int) -> int:
    """An amount that people would write: memory in whole mebibytes."""
    return left // _MIB * _MIB if name in (MEMORY, STORAGE) and left >= _MIB else left


def _lowering(case: Case, name: str, left: int) -> tuple[Patch, str] | None:
    """The change after which the pod asks for so much in total; None where no single container can give up as much."""
    total = _total(case, name)
    pod_level = case.pod.spec.resources
    if pod_level is not None and name in pod_level.requests:
        amount = _quantity(name, in_units(name, pod_level.requests[name].amount) - (total - left))
        return (
            (put(str(amount), "spec", "resources", "requests", name),),
            f"{amount} instead of {pod_level.requests[name]} of {name} for the pod",
        )
    asking = [each for each in _containers(case) if name in each[2].resources.requests]
    if not asking:
        return None
    group, index, container = max(asking, key=lambda each: each[2].resources.requests[name].amount)
    asked = container.resources.requests[name]
    less = in_units(name, asked.amount) - (total - left)
    if less <= 0:
        return None
    amount = _quantity(name, less)
    words = f"{amount} instead of {asked} of {name} in container {container.name}"
    return _set(group, index, container, name, str(amount)), words


def _set(group: str, index: int, container: Container, name: str, amount: str) -> Patch:
    steps: list[Step] = [put(amount, "spec", group, index, "resources", "requests", name)]
    if "/" in name and name in container.resources.limits:
        # What a node counts in whole units must have its limit equal to its request.
        steps.append(put(amount, "spec", group, index, "resources", "limits", name))
    return tuple(steps)


def _containers(case: Case) -> list[tuple[str, int, Container]]:
    spec = case.pod.spec
    return [
        *(("containers", i, container) for i, container in enumerate(spec.containers)),
        *(("initContainers", i, container) for i, container in enumerate(spec.init_containers)),
    ]


def _total(case: Case, name: str) -> int:
    shape = case.demand.needs.shape
    named = {CPU: shape.cpu, MEMORY: shape.memory, STORAGE: shape.storage}
    return named[name] if name in named else dict(shape.extended)[name]


def _quantity(name: str, units: int) -> Quantity:
    if name == CPU:
        return Quantity(Fraction(units, _MILLI))
    binary = name in (MEMORY, STORAGE)
    return Quantity(units, Format.BINARY_SI if binary else Format.DECIMAL_SI)
