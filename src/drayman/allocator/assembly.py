"""From placements to AllocationResults: entries, configuration, node selectors.

A configuration entry appears once and lists all requests that it is for, which is what a driver looks at. Kubernetes 1.36 repeats an
entry of the claim for each request that it names: the same parameters several times over, and with some dozen of them more than
the API server accepts in a status. Policy `first-fit`, whose results are compared with those of Kubernetes, does the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from drayman.allocator.problem.outcome import ClaimPlan
from drayman.allocator.problem.tables import Alternative, Tables, claim_name
from drayman.api.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from drayman.api.quantity import Quantity
from drayman.api.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from drayman.inventory.device import DeviceRecord
from drayman.inventory.ledger import holder_of

_SHARES = uuid.UUID("6f0d1c46-8d0a-5b9e-9a57-3f4a1b7c2d11")


class AmbiguousNodeSelectorError(Exception):
    """A device selects nodes by several alternative terms; a result can carry only one."""

    def __init__(self, record: DeviceRecord) -> None:
        super().__init__(f"device {record.id}: its node selector has more than one term")


def assemble(
    tables: Tables, placements: Sequence[tuple[Alternative, int]], *, repeats_config: bool
) -> tuple[ClaimPlan, ...]:
    """What each claim gets. Raises AmbiguousNodeSelectorError.

    With `repeats_config`, an entry of a claim's configuration is repeated for each request that it names.
    """
    plans = []
    for index, claim in enumerate(tables.claims):
        mine = [(a, position) for a, position in placements if a.claim == index]
        served = tuple(dict.fromkeys(alternative for alternative, _ in mine))
        records = [tables.view.hardware.records[position] for _, position in mine]
        allocation = AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(_entry(tables, claim, a, position) for a, position in mine),
                config=tuple(_config(claim, served, repeats_config)),
            ),
            node_selector=_node_selector(records, tables.view.node),
        )
        plans.append(ClaimPlan(claim, allocation))
    return tuple(plans)


def _entry(
    tables: Tables, claim: ResourceClaim, alternative: Alternative, position: int
) -> DeviceRequestAllocationResult:
    record = tables.view.hardware.records[position]
    driver, pool, device = record.id
    share_id, consumed = None, {}
    if record.shareable:
        share_id = share_name(claim, alternative.name, record)
        kind = tables.view.hardware.capacity_kind[position]
        amounts = tables.charges[alternative.charge][kind] or ()
        consumed = {
            capacity.name: Quantity(amount, record.device.capacity[capacity.name].value.format)
            for capacity, amount in zip(record.capacities, amounts, strict=True)
        }
    return DeviceRequestAllocationResult(
        request=alternative.name,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=True if alternative.admin else None,
        tolerations=alternative.spec.tolerations,
        binding_conditions=record.device.binding_conditions or (),
        binding_failure_conditions=record.device.binding_failure_conditions or (),
        share_id=share_id,
        consumed_capacity=consumed,
    )


def share_name(claim: ResourceClaim, request: str, record: DeviceRecord) -> str:
    """The id of a share. Derived from its claim, so that the same question always has the same answer."""
    return str(uuid.uuid5(_SHARES, f"{holder_of(claim)} {claim_name(claim)} {request} {record.id}"))


def _config(
    claim: ResourceClaim, served: Sequence[Alternative], repeats: bool
) -> Iterable[DeviceAllocationConfiguration]:
    by_class: dict[str, list[Alternative]] = {}
    for alternative in served:
        by_class.setdefault(alternative.spec.device_class_name, []).append(alternative)
    for alternatives in by_class.values():
        names = tuple(alternative.name for alternative in alternatives)
        for of_class in alternatives[0].device_class.spec.config:
            yield DeviceAllocationConfiguration(
                source="FromClass", requests=names, opaque=of_class.opaque
            )
    for config in claim.spec.devices.config:
        times = sum(_names(config.requests, a) for a in served) if config.requests else 1
        for _ in range(times if repeats else min(times, 1)):
            yield DeviceAllocationConfiguration(
                source="FromClaim", requests=config.requests, opaque=config.opaque
            )


def _names(requests: tuple[str, ...], alternative: Alternative) -> bool:
    return alternative.name in requests or alternative.name.partition("/")[0] in requests


def _node_selector(records: Iterable[DeviceRecord], node: Node) -> NodeSelector | None:
    """Where the allocation can be used: on this node if a device sits there, else where all devices reach."""
    fields: dict[tuple[object, ...], NodeSelectorRequirement] = {}
    expressions: dict[tuple[object, ...], NodeSelectorRequirement] = {}
    for record in records:
        if record.node_name or record.device.binds_to_node:
            name = NodeSelectorRequirement(
                key="metadata.name", operator="In", values=(node.metadata.name,)
            )
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
        selector = record.node_selector
        if selector is None:
            continue
        if len(selector.node_selector_terms) > 1:
            raise AmbiguousNodeSelectorError(record)
        for term in selector.node_selector_terms:
            _add_requirements(fields, term.match_fields)
            _add_requirements(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(
        match_expressions=tuple(expressions.values()), match_fields=tuple(fields.values())
    )
    return NodeSelector(node_selector_terms=(term,))


def _add_requirements(
    known: dict[tuple[object, ...], NodeSelectorRequirement],
    requirements: Iterable[NodeSelectorRequirement],
) -> None:
    for requirement in requirements:
        key = (requirement.key, requirement.operator, frozenset(requirement.values))
        known.setdefault(key, requirement)
