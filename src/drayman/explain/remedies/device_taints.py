"""Devices that are tainted: tolerate the taints, or have them removed.

Which taints have to go is found as for pods that are in the way: all taints on a node are disregarded, then put back one by one as long as
the pod still fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.api.codec import to_dict
from drayman.api.resource import DeviceTaintRule, DeviceToleration, ResourceSlice
from drayman.explain.answer import Operation, Remedy
from drayman.explain.remedies.case import Ask, Case, ClaimText, remedy
from drayman.explain.remedies.patching import Patch, cut, patch_of, patched, put
from drayman.explain.remedies.trying import Fit
from drayman.inventory.device import DeviceRecord
from drayman.inventory.taints import Taints
from drayman.inventory.view import NodeView
from drayman.placement.nodes import NodeState
from drayman.reasons.naming import taint_title
from drayman.reasons.wording import and_list, named

_Taints: TypeAlias = tuple[tuple[str, str, str], ...]
_MOST_LOOKED_AT: Final = 512
"""Nodes on which taints are looked for."""
_MOST_KINDS: Final = 4
_MOST_NODES: Final = 4
_MOST_ON_A_NODE: Final = 16


class _Rule(Struct, frozen=True):
    """A rule that taints devices of a node."""

    rule: DeviceTaintRule


class _Published(Struct, frozen=True):
    """Taints that the driver has put on a device itself."""

    record: DeviceRecord


def tolerated_taints(case: Case) -> Iterator[Remedy]:
    """Tolerations with which a request gets tainted devices."""
    for written in case.claim_texts:
        for ask in written.asks():
            kinds: Counter[_Taints] = Counter()
            for _, view in _tainted(case, ask.spec.tolerations):
                kinds.update(taints for _, taints in _untolerated(view, ask.spec.tolerations))
            for taints, _ in kinds.most_common(_MOST_KINDS):
                yield from _tolerating(case, written, ask, taints)


def removed_taints(case: Case) -> Iterator[Remedy]:
    """Taints of devices without which the pod fits, the fewest on one node."""
    if not case.state.inventory.features.device_taints:
        return
    for node, view in islice(_tainted(case, ()), _MOST_NODES):
        culprits = _culprits(case, view)
        if len(culprits) <= _MOST_ON_A_NODE and _fits_without(case, node, culprits):
            yield from _without(case, node, _needed(case, node, culprits))
            return


def _tolerating(case: Case, written: ClaimText, ask: Ask, taints: _Taints) -> Iterator[Remedy]:
    known = [to_dict(toleration) for toleration in ask.spec.tolerations]
    added = [
        {"key": key, "operator": "Equal", "value": value, "effect": effect}
        if value
        else {"key": key, "operator": "Exists", "effect": effect}
        for key, value, effect in taints
    ]
    names = named("taint", [taint_title(*taint) for taint in taints])
    sentence = f"tolerate the {names} of devices in {written.naming(ask)}"
    return case.with_spec(written, sentence, put([*known, *added], *ask.path, "tolerations"))


def _tainted(
    case: Case, tolerations: tuple[DeviceToleration, ...]
) -> Iterator[tuple[NodeState, NodeView]]:
    """The nearest nodes with devices whose taints are not tolerated."""
    for node in islice(case.nodes, _MOST_LOOKED_AT):
        view = case.state.inventory.view(node.node, case.state.ledger)
        if view.tolerated(tolerations) != view.hardware.everything:
            yield node, view


def _untolerated(
    view: NodeView, tolerations: tuple[DeviceToleration, ...]
) -> Iterator[tuple[DeviceRecord, _Taints]]:
    for part, taints in zip(view.parts, view.taints, strict=True):
        for record in part.hardware.records:
            found = taints.untolerated(record, tolerations)
            if found:
                yield record, found


def _culprits(case: Case, view: NodeView) -> list[_Rule | _Published]:
    """What taints devices of a node. Rules come last, as they are easiest to take back."""
    published: list[_Rule | _Published] = []
    rules: dict[str, _Rule | _Published] = {}
    for record, _ in _untolerated(view, ()):
        own = _blocking(record)
        if own:
            published.append(_Published(record))
        for rule in case.world.objects.taint_rules:
            if _blocking(record, rule) != own:
                rules[rule.metadata.name] = _Rule(rule)
    return [*published, *rules.values()]


def _needed(
    case: Case, node: NodeState, culprits: list[_Rule | _Published]
) -> list[_Rule | _Published]:
    """The culprits that have to be removed."""
    gone = list(culprits)
    for culprit in culprits:
        rest = [other for other in gone if other is not culprit]
        if _fits_without(case, node, rest):
            gone = rest
    return gone


def _fits_without(
    case: Case, node: NodeState, culprits: Sequence[_Rule | _Published]
) -> Fit | None:
    with case.state.trial():
        for culprit in culprits:
            if isinstance(culprit, _Rule):
                case.state.remove_taint_rule(culprit.rule)
        for before, patch in _slices(culprits):
            case.state.set_slice(patched(before, patch))
        return case.trials.first_fit(case.demand, [node])


def _without(
    case: Case, node: NodeState, culprits: Sequence[_Rule | _Published]
) -> Iterator[Remedy]:
    fit = _fits_without(case, node, culprits)
    if fit is None:
        return
    rules = [culprit.rule for culprit in culprits if isinstance(culprit, _Rule)]
    records = [culprit.record for culprit in culprits if isinstance(culprit, _Published)]
    operations = [
        Operation(verb="delete", kind="DeviceTaintRule", name=rule.metadata.name) for rule in rules
    ]
    operations += [
        patch_of("ResourceSlice", before.metadata.name, patch)
        for before, patch in _slices(culprits)
    ]
    commands = [f"kubectl delete devicetaintrule {rule.metadata.name}" for rule in rules]
    parts = []
    if rules:
        names = named("rule", [rule.metadata.name for rule in rules])
        parts.append(f"delete the device taint {names}")
    if records:
        names = and_list([f"{record.id.device} of {record.id.pool}" for record in records])
        parts.append(f"have driver {records[0].id.driver} take the taints off {names}")
    yield remedy(" and ".join(parts), tuple(operations), fit, () if records else tuple(commands))


def _slices(culprits: Sequence[_Rule | _Published]) -> list[tuple[ResourceSlice, Patch]]:
    """The slices that have to be published without taints, and how."""
    found: dict[str, tuple[ResourceSlice, Patch]] = {}
    for culprit in culprits:
        if isinstance(culprit, _Rule):
            continue
        slice_, device = culprit.record.slice, culprit.record.device
        index = next(
            i for i, other in enumerate(slice_.spec.devices or ()) if other.name == device.name
        )
        blocking = _blocking(culprit.record)
        kept = [
            to_dict(taint)
            for taint in device.taints
            if (taint.key, taint.value, taint.effect) not in blocking
        ]
        path = ("spec", "devices", index, "taints")
        _, patch = found.get(slice_.metadata.name, (slice_, ()))
        step = put(kept, *path) if kept else cut(*path)
        found[slice_.metadata.name] = (slice_, (*patch, step))
    return list(found.values())


def _blocking(record: DeviceRecord, *rules: DeviceTaintRule) -> _Taints:
    """The taints of a device that keep pods away: its own, and those of these rules."""
    return Taints((record,), rules).blocking(record)
