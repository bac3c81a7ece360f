"""What would become of a pod: the steps of a scheduling decision, without a scheduler.

Claims that a pod would get from templates are drafted, as the scheduler drafts them, with names that count up, so that the same question
gives the same answer. What was found can be counted (`assume`), so that the next pod is asked about on top of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from drayman.allocator import Plan, Policy
from drayman.api.claim_generation import SUFFIX_ALPHABET, SUFFIX_LENGTH, make_claim
from drayman.api.core import Pod, PodResourceClaim
from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.placement.claims import claims_of, missing_group
from drayman.placement.demand import Demand, Demands
from drayman.placement.fit import Cause, Verdict
from drayman.placement.fit.verdict import NODE_AFFINITY
from drayman.placement.mapped_resources import as_requests
from drayman.placement.placing import Found, NotFound, Placer
from drayman.placement.state import ClusterState

BINDING_TIMEOUT_S: Final = 600.0
"""How long drivers may take to make devices ready, unless the scheduler is told otherwise."""
_MOST_PLACERS: Final = 256
_NOT_THE_ONE: Final = Verdict.refusal(Cause.NODE_AFFINITY, NODE_AFFINITY)


class Asker:
    """Asks about pods, one after the other."""

    def __init__(
        self,
        state: ClusterState,
        now: float,
        *,
        policy: Policy = Policy.BEST,
        binding_timeout_s: float = BINDING_TIMEOUT_S,
    ) -> None:
        self._state = state
        self._now = now
        self._policy = policy
        self._demands = Demands(state, binding_timeout_s)
        self._placers: Bounded[object, Placer] = Bounded(_MOST_PLACERS)
        self._drafts = 0

    def demand(self, pod: Pod) -> Demand:
        """What the pod asks for. Raises ClaimsNotReadyError."""
        claims = claims_of(pod, self._state.find_claim, self._draft)
        group = pod.spec.scheduling_group
        if group is not None and claims and self._state.groups.of(pod) is None:
            raise missing_group(group.pod_group_name)
        return self.demand_with(pod, claims)

    def demand_with(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Demand:
        """What the pod would ask for if its claims were these."""
        return self._demands.of(pod, tuple(claims), self._now)

    def find(self, demand: Demand) -> Found | NotFound:
        """Where the pod would go."""
        return self.placer(demand).find(demand)

    def find_on(self, demand: Demand, node: str) -> Found | NotFound:
        """The same for a pod that can only go to one node, whose name it gives. The others are not asked."""
        only = dataclasses.replace(demand, only_node=node)
        found = Placer(self._state, self._policy).find(only)
        if isinstance(found, Found):
            return found
        verdicts = dict.fromkeys(self._state.nodes, _NOT_THE_ONE) | {
            name: verdict for name, verdict in found.verdicts.items() if name == node
        }
        return NotFound(verdicts, found.retry)

    def placer(self, demand: Demand) -> Placer:
        """Who looks for nodes for pods of this shape."""
        # A pod that is tied to a node by its claims is alone in asking for that.
        if demand.only_node is not None:
            return Placer(self._state, self._policy)
        placer = self._placers.get(demand.key)
        if placer is None:
            placer = self._placers[demand.key] = Placer(self._state, self._policy)
        return placer

    def assume(self, demand: Demand, found: Found) -> None:
        """The pod goes where it was found to fit: node, devices and claims count from now on."""
        needs, plan = demand.needs, found.plan
        if plan is not None:
            needs = needs.plus(taken) if (taken := self._mapped(plan)) else needs
            self._state.assume_plan(plan)
            for item in plan.claims:
                if self._state.known_claim(item.claim) is not None:
                    self._state.assume_claim(_allocated(item.claim, item.allocation))
        if found.volumes is not None:
            self._state.volumes.take(found.volumes, found.node.facts.name)
        self._state.assume_pod(needs, found.node.facts.name)
        if demand.pod.spec.scheduling_group is not None:
            self._state.groups.place(demand.pod)

    def _mapped(self, plan: Plan) -> Mapping[str, int]:
        """What the devices take of the node's own resources."""
        total: dict[str, int] = {}
        if self._state.mapped_devices:
            for item in plan.claims:
                amounts = self._state.mapped_devices.taken_by(item.allocation)
                for name, amount in as_requests(amounts).items():
                    total[name] = total.get(name, 0) + amount
        return total

    def _draft(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim | None:
        name = entry.resource_claim_template_name or ""
        template = self._state.find_template(pod.metadata.namespace, name)
        return None if template is None else make_claim(pod, entry, template, self._suffix())

    def _suffix(self) -> str:
        self._drafts += 1
        digits, rest = [], self._drafts
        for _ in range(SUFFIX_LENGTH):
            rest, digit = divmod(rest, len(SUFFIX_ALPHABET))
            digits.append(SUFFIX_ALPHABET[digit])
        return "".join(reversed(digits))


def _allocated(claim: ResourceClaim, allocation: object) -> ResourceClaim:
    status = msgspec.structs.replace(claim.status, allocation=allocation)
    return msgspec.structs.replace(claim, status=status)
