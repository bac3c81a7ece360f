"""One pod that does not fit, with everything that remedies are derived from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.pods import entry_claims
from drayman.api.resource import RequestSpec, ResourceClaim, ResourceClaimSpec
from drayman.explain.answer import Operation, Remedy
from drayman.explain.remedies.linked_pods import PodIndex
from drayman.explain.remedies.patching import Patch, Step, patch_of, patched, under
from drayman.explain.remedies.trying import Fit, Trials
from drayman.placement.demand import Demand
from drayman.placement.fit import Verdict
from drayman.placement.nodes import NodeState
from drayman.placement.state import ClusterState
from drayman.placement.world import World

_CLAIM: Final = "ResourceClaim"
_TEMPLATE: Final = "ResourceClaimTemplate"


class Ask(Struct, frozen=True):
    """A request, or one of its alternatives, and where it is in the spec of its claim."""

    name: str
    spec: RequestSpec
    path: tuple[str | int, ...]


class ClaimText(Struct, frozen=True):
    """What claims without devices ask for, and the objects in which that is written. Claims of one template change together."""

    title: str
    spec: ResourceClaimSpec
    positions: tuple[int, ...]
    """Of the claims among those of the pod."""
    places: tuple[tuple[str, str], ...]
    """Kind and name of each object."""

    def asks(self) -> Iterator[Ask]:
        for i, request in enumerate(self.spec.devices.requests):
            for j, (name, spec) in enumerate(request.alternatives()):
                where = ("firstAvailable", j) if request.exactly is None else ("exactly",)
                yield Ask(name, spec, ("devices", "requests", i, *where))

    def naming(self, ask: Ask) -> str:
        return f"request {ask.name} of {self.title}"


class Rephrasing(Struct, frozen=True):
    """Another way to ask."""

    words: str
    operations: tuple[Operation, ...]
    pod: Pod
    claims: tuple[ResourceClaim, ...]
    commands: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Case:
    """A pod, what it asks for, and what the nodes answered."""

    world: World
    pod: Pod
    demand: Demand
    verdicts: Mapping[str, Verdict]
    nodes: Sequence[NodeState]
    """All candidates, the nearest first."""
    trials: Trials
    claim_texts: tuple[ClaimText, ...]
    pods: PodIndex

    @property
    def state(self) -> ClusterState:
        return self.world.state

    def with_spec(self, written: ClaimText, words: str, *patch: Step) -> Iterator[Remedy]:
        """This change of what the claims ask for, if it helps."""
        claims = self.claims_with(written, patch)
        operations = self.rewriting(written, patch)
        yield from self.tried(Rephrasing(words, operations, self.pod, claims))

    def with_pod(
        self,
        words: str,
        *patch: Step,
        nodes: Sequence[NodeState] | None = None,
        commands: tuple[str, ...] = (),
    ) -> Iterator[Remedy]:
        """This change of the pod, if it helps."""
        pod = patched(self.pod, patch)
        change = Rephrasing(words, (self.pod_patch(patch),), pod, self.demand.claims, commands)
        yield from self.tried(change, nodes)

    def tried(
        self, change: Rephrasing, nodes: Sequence[NodeState] | None = None
    ) -> Iterator[Remedy]:
        """The change, if the pod fits with it."""
        fit = self.trials.ask(change.pod, change.claims, nodes)
        if fit is not None:
            yield remedy(change.words, change.operations, fit, change.commands)

    def claims_with(self, written: ClaimText, patch: Patch) -> tuple[ResourceClaim, ...]:
        """The claims of the pod, with a patch of their spec."""
        changed = list(self.demand.claims)
        for position in written.positions:
            changed[position] = patched(changed[position], under("/spec", patch))
        return tuple(changed)

    def rewriting(self, written: ClaimText, patch: Patch) -> tuple[Operation, ...]:
        namespace = self.pod.metadata.namespace
        return tuple(
            patch_of(
                kind, name, under("/spec/spec" if kind == _TEMPLATE else "/spec", patch), namespace
            )
            for kind, name in written.places
        )

    def pod_patch(self, patch: Patch) -> Operation:
        metadata = self.pod.metadata
        return patch_of("Pod", metadata.name, patch, metadata.namespace)


def remedy(
    words: str, operations: tuple[Operation, ...], fit: Fit, commands: tuple[str, ...] = ()
) -> Remedy:
    """A change that was found to help."""
    return Remedy(
        sentence=as_sentence(words),
        operations=operations,
        node=fit.node,
        devices=fit.devices,
        commands=commands,
    )


def or_else(first: Iterable[Remedy], second: Iterable[Remedy]) -> Iterator[Remedy]:
    """The first remedies, or the second where none of the first helps."""
    helped = False
    for found in first:
        helped = True
        yield found
    if not helped:
        yield from second


def as_sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def claim_texts_of(pod: Pod, demand: Demand, world: World) -> tuple[ClaimText, ...]:
    """What the claims of a pod that have no devices ask for, each text once."""
    found: dict[tuple[str, str], ClaimText] = {}
    for position, (claim, template) in enumerate(zip(demand.claims, _templates(pod), strict=True)):
        if claim.status.allocation is not None:
            continue
        exists = world.claim(claim.metadata.namespace, claim.metadata.name) is not None
        places = [(_CLAIM, claim.metadata.name)] if exists else []
        if template and world.template(claim.metadata.namespace, template) is not None:
            places.insert(0, (_TEMPLATE, template))
        if not places:
            continue  # made from a template that no longer exists: nothing is left to change
        kind, name = places[0]
        title = f"template {name}" if kind == _TEMPLATE else f"claim {name}"
        known = found.get(places[0])
        if known is not None:
            positions, places = (*known.positions, position), [*known.places, *places[1:]]
        else:
            positions = (position,)
        found[kind, name] = ClaimText(title, claim.spec, positions, tuple(places))
    return tuple(found.values())


def _templates(pod: Pod) -> Iterator[str]:
    """For each claim of a pod the template that it was or is to be made from, if any."""
    for entry, name in entry_claims(pod):
        if entry.resource_claim_name:
            yield ""
        elif name != "":
            yield entry.resource_claim_template_name or ""
