"""What would help a gang of which a member alone fits nowhere: what would help that member.

A remedy of the member is made on the state of the world for all members that are like it, and the whole gang is decided about. Members
that are made from one template, for instance, all ask for less.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod, PodSpec
from drayman.explain.answer import Operation, Remedy
from drayman.explain.remedies.choosing import RemedyReport, remedies_for
from drayman.explain.remedies.patching import patched
from drayman.explain.spelling import KnownNames, misspelt
from drayman.explain.survey import Survey
from drayman.explain.values import mistaken_values
from drayman.placement.decision.deciding import Decider
from drayman.placement.demand import Demand
from drayman.placement.placing import NotFound
from drayman.placement.world import World
from drayman.reasons.gangs import OF_A_POD
from drayman.reasons.headline import Headlines
from drayman.reasons.wording import continued

_MOST_KINDS: Final = 16
"""Kinds of members that are looked at."""


class Kind(StrEnum):
    """What is changed here. The end of other pods is tried for the whole gang."""

    POD = "Pod"
    CLAIM = "ResourceClaim"
    TEMPLATE = "ResourceClaimTemplate"
    NODE = "Node"
    CLASS = "DeviceClass"


class Stuck(Struct, frozen=True, eq=False):
    """A member that fits nowhere, for a reason that has nothing to do with the others, and those that are written like it."""

    demand: Demand
    not_found: NotFound
    alike: tuple[Demand, ...]

    @property
    def title(self) -> str:
        more = f" and {len(self.alike):,} like it" if self.alike else ""
        return f"pod {self.demand.pod.metadata.name}{more}"


def stuck_members(world: World, members: Sequence[Pod]) -> Iterator[Stuck]:
    """Those of the members for which no node is to be expected, one of each kind."""
    round_ = Decider(world.state).round(world.now)
    kinds: dict[Hashable, list[Demand]] = {}
    for pod in members:
        demand = round_.readied(pod)
        if isinstance(demand, Demand):
            kinds.setdefault(demand.key, []).append(demand)
    headlines = Headlines(world.state)
    for first, *rest in islice(kinds.values(), _MOST_KINDS):
        found = round_.find(first)
        if isinstance(found, NotFound) and headlines.of(first, found).reason.kind in OF_A_POD:
            yield Stuck(first, found, tuple(each for each in rest if _is_written_like(first, each)))


def remedies_of(world: World, stuck: Stuck) -> RemedyReport:
    """What would help the member, each made for all that are like it. Whether that helps the gang is to be tried with `carry_out`."""
    survey = Survey(world.state, stuck.demand)
    spelling = misspelt(survey, KnownNames(world.objects.slices))
    own = remedies_for(
        world,
        stuck.demand.pod,
        stuck.demand,
        stuck.not_found,
        spelling,
        mistaken_values(survey),
    )
    made = tuple(_made_for_all(stuck, each) for each in own.remedies if _can_be_tried(each))
    return RemedyReport(made, own.untried)


def carry_out(world: World, pods: Mapping[str, Pod], found: Remedy) -> None:
    """In a trial: what if this were done? `pods` are the members by name."""
    state = world.state
    for operation in found.operations:
        name, patch = operation.name, operation.patch
        match operation.kind:
            case Kind.POD:
                state.gangs.see(patched(pods[name], patch))
            case Kind.CLAIM:
                claim = state.find_claim(operation.namespace, name)
                assert claim is not None
                state.remove_claim(claim)  # of the same version there is only one
                state.set_claim(patched(claim, patch))
            case Kind.TEMPLATE:
                template = state.find_template(operation.namespace, name)
                assert template is not None
                state.set_template(patched(template, patch))
            case Kind.NODE:
                state.set_node(patched(state.nodes[name].node, patch))
            case Kind.CLASS:
                state.set_class(patched(state.inventory.classes[name], patch))


def _can_be_tried(found: Remedy) -> bool:
    kinds = {each.value for each in Kind}
    return all(each.verb == "patch" and each.kind in kinds for each in found.operations)


def _made_for_all(stuck: Stuck, found: Remedy) -> Remedy:
    operations = tuple(_for_all(stuck, found.operations))
    return replace(
        found,
        sentence=f"For {stuck.title}: {continued(found.sentence)}",
        operations=operations,
        commands=found.commands if operations == found.operations else (),
    )


def _is_written_like(first: Demand, other: Demand) -> bool:
    """Whether a patch for the one does the same to the other."""
    return _text(first.pod) == _text(other.pod) and [c.spec for c in first.claims] == [
        c.spec for c in other.claims
    ]


def _text(pod: Pod) -> PodSpec:
    return replace(pod.spec, resource_claims=())


def _for_all(stuck: Stuck, operations: Iterable[Operation]) -> Iterator[Operation]:
    """The operations, and the same for what the others have in the place of what they change."""
    known: set[tuple[str, str]] = set()
    for operation in operations:
        names = [operation.name, *_counterparts(stuck, operation)]
        for name in dict.fromkeys(names):
            if (operation.kind, name) not in known:
                known.add((operation.kind, name))
                yield replace(operation, name=name)


def _counterparts(stuck: Stuck, operation: Operation) -> Iterator[str]:
    if operation.kind == Kind.POD:
        yield from (each.pod.metadata.name for each in stuck.alike)
    elif operation.kind == Kind.CLAIM:
        names = [claim.metadata.name for claim in stuck.demand.claims]
        position = names.index(operation.name)
        yield from (each.claims[position].metadata.name for each in stuck.alike)
