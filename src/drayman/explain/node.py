"""Everything about one node: whether it takes pods, how its devices are used, and why waiting pods do not go there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from functools import partial
from typing import Final

import msgspec

from drayman.api.core import Node, Pod
from drayman.api.pods import is_finished
from drayman.explain.answer import DeviceCount, Explanation, Holder
from drayman.explain.hidden import hides_use
from drayman.explain.holders import Holders, joined
from drayman.explain.pod import PodHeadlines, explained
from drayman.explain.promised import reserved_in
from drayman.inventory.identity import DeviceId
from drayman.placement.demand import Demand
from drayman.placement.fit import FITS
from drayman.placement.fit.readiness import Closed, closed_by
from drayman.placement.fit.taints import REPELLING
from drayman.placement.nodes import NodeState
from drayman.placement.occupancy import DeviceStanding, State, count, doubted
from drayman.placement.prices import offer_of
from drayman.placement.world import World
from drayman.reasons.causes import ON_ONE_NODE, FitTest
from drayman.reasons.lost import node_state
from drayman.reasons.naming import taint_title
from drayman.reasons.node_fit import NodeFit, Unfit
from drayman.reasons.on_node import device_limit
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import and_list, counted
from drayman.workloads.makers import Maker, known_as

_HELD: Final = (State.USED, State.SHARED, State.PARTITIONED)


def explain_node(world: World, node: Node) -> Explanation:
    """The node's state, the holders of its devices, and which pods wait and why not here."""
    name = node.metadata.name
    standings = _standings(world, node)
    pods = [p for p in world.objects.pods if not is_finished(p)]
    here = sum(pod.spec.node_name == name for pod in pods)
    return msgspec.structs.replace(
        explained(world, "Node", node.metadata, _headline(world, node, standings, here)),
        taints=tuple(_taints(node)),
        counts=tuple(_counts(standings)),
        holders=tuple(_holders(world, standings)),
        parts=tuple(_kept_away(world, world.state.nodes[name], pods)),
    )


def _standings(world: World, node: Node) -> list[DeviceStanding]:
    """The devices that sit on the node."""
    name, state = node.metadata.name, world.state
    slices = [
        each
        for each in world.objects.slices
        if each.spec.node_name == name or each.spec.per_device_node_selection
    ]
    found = count(state.inventory, state.ledger, [node], slices, world.objects.taint_rules)
    own = [standing for standing in found.devices.values() if standing.node == name]
    return [doubted(standing) for standing in own] if hides_use(world.unseen) else own


def _headline(world: World, node: Node, standings: list[DeviceStanding], pods: int) -> Headline:
    name, closed = node.metadata.name, closed_by(node)
    has = f"It has {counted(pods, 'pod')}{_devices_in_words(standings)}."
    if Closed.NOT_READY in closed:
        also = " and cordoned" if Closed.CORDONED in closed else ""
        text = f"Node {name} {node_state(world, name)}{also}; it takes no pods. {has}"
        return Headline.of(Reason.NODE_NOT_READY, text)
    if Closed.CORDONED in closed:
        return Headline.of(
            Reason.NODES_CORDONED, f"Node {name} is cordoned; it takes no pods. {has}"
        )
    taints = list(_taints(node))
    terms = [f"tolerate {and_list(taints)}"] if taints else []
    if offer_of(node.metadata.labels, world.prices).is_spot:
        terms.append("accept spot nodes")
    whom = f" that {' and '.join(terms)}" if terms else ""
    return Headline.of(Reason.RUNS, f"Node {name} is ready and takes pods{whom}. {has}")


def _devices_in_words(standings: list[DeviceStanding]) -> str:
    if not standings:
        return " and no devices"
    totals = Counter(standing.state for standing in standings)
    held = sum(totals[state] for state in _HELD)
    parts = [f"{held:,} in use", f"{totals[State.FREE]:,} free"]
    others = (State.TAINTED, State.UNAVAILABLE, State.UNKNOWN)
    parts += [f"{totals[state]:,} {state}" for state in others if totals[state]]
    return f" and {counted(len(standings), 'device')}: {and_list(parts, len(parts))}"


def _taints(node: Node) -> Iterator[str]:
    """What keeps away pods that do not tolerate it."""
    for taint in node.spec.taints:
        if taint.effect in REPELLING:
            yield taint_title(taint.key, taint.value, taint.effect)


def _counts(standings: list[DeviceStanding]) -> Iterator[DeviceCount]:
    drivers: dict[str, Counter[State]] = {}
    for standing in standings:
        drivers.setdefault(standing.id.driver, Counter())[standing.state] += 1
    for driver, totals in drivers.items():
        states = {state.value: totals[state] for state in State if totals[state]}
        yield DeviceCount(driver=driver, total=totals.total(), states=states)


def _holders(world: World, standings: list[DeviceStanding]) -> list[Holder]:
    """The holders of the node's devices, the workloads with the most first."""
    known = Holders(world)
    held: dict[str, dict[DeviceId, None]] = {}
    for standing in standings:
        for holder in known.of_device(standing.id):
            held.setdefault(holder, {})[standing.id] = None
    found = joined(known.describe(holder, devices) for holder, devices in held.items())
    return sorted(found, key=lambda each: -len(each.devices))


def _kept_away(world: World, node: NodeState, pods: list[Pod]) -> Iterator[Explanation]:
    """Pods that wait for a node, by workload, and what keeps them from this one."""
    known: dict[Hashable, Headline | None] = {}
    groups: dict[tuple[str, Maker, str], Explanation] = {}
    with reserved_in(world) as reserved:
        headlines = PodHeadlines(world, reserved)
        for pod in pods:
            if pod.spec.node_name:
                continue
            with reserved.as_seen_by(pod):
                demand = headlines.demand(pod)
                if isinstance(demand, Headline):
                    continue
                alike = (demand.key, reserved.view_of(pod))
                if alike not in known:
                    why = partial(_why_not_here, world, headlines, demand, node)
                    first = why()
                    known[alike] = first and reserved.on_node(first, node.facts.name, why)
            headline = known[alike]
            if headline is not None:
                _add(groups, pod, headline)
    yield from sorted(groups.values(), key=lambda each: (-each.count, each.namespace, each.name))


def _add(groups: dict[tuple[str, Maker, str], Explanation], pod: Pod, headline: Headline) -> None:
    whose = known_as(pod)
    key = (pod.metadata.namespace, whose, headline.reason.value)
    known = groups.get(key)
    groups[key] = (
        Explanation(
            kind=whose.kind,
            name=whose.name,
            namespace=pod.metadata.namespace,
            headline=headline,
        )
        if known is None
        else msgspec.structs.replace(known, count=known.count + 1)
    )


def _sentence(unfit: Unfit) -> str:
    """The sentence about the node itself."""
    words = and_list(unfit.reasons)
    match unfit.test:
        case FitTest.CORDON:
            return "The node is cordoned."
        case FitTest.TAINTS:
            return f"The node has a taint that the pod does not tolerate: {words}."
        case FitTest.SPOT:
            return "The node is a spot node, which the pod does not accept."
        case FitTest.RESOURCES:
            return f"The node does not have enough left of what the pod needs: {words}."
        case _:
            return f"{words[:1].upper()}{words[1:]}."


def _why_not_here(
    world: World, headlines: PodHeadlines, demand: Demand, node: NodeState
) -> Headline | None:
    """What keeps a pod from a node; None where it could go there."""
    unfit = NodeFit(world.state, demand).of(node)
    if unfit is not None:
        return Headline.of(ON_ONE_NODE[unfit.cause], _sentence(unfit))
    if demand.impossible is not None:
        return headlines.of(demand.pod)
    verdict = headlines.devices_verdict(demand, node)
    if verdict is FITS:
        return None
    return device_limit(world.state, demand, node.facts.name, verdict)
