"""Why a gang waits: its object is missing or does not make sense, members do not exist or are not ready, or they do not fit at once.

What is said about a gang for which there is no room: what the domains hold, by counting; and what keeps the next member out of the place
that has the most room, with as many as fit there in their places. If not even one of them fits anywhere, and that is no matter of room,
the reason is that of a single pod.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.allocator import Policy
from drayman.placement.decision.deciding import Round
from drayman.placement.demand import Demand
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.fit import FITS
from drayman.placement.gangs.gang import Flaw, FlawKind, Gang
from drayman.placement.gangs.lateness import Delay, delay
from drayman.placement.gangs.quorum import Shortfall
from drayman.placement.gangs.staleness import Fallen
from drayman.placement.joint.gangs import Flawed, GangDecider, Incomplete, NoRoom
from drayman.placement.joint.places import Nearest
from drayman.placement.joint.stated_needs import Scarce
from drayman.placement.nodes import NodeState
from drayman.placement.placing import NotFound
from drayman.placement.state import ClusterState
from drayman.reasons.headline import Headlines
from drayman.reasons.locality import LocalityRefusal, locality_refusal
from drayman.reasons.planned import Planned
from drayman.reasons.queues import kept_out
from drayman.reasons.reason import Headline, Outlook, Reason
from drayman.reasons.slips import similar
from drayman.reasons.waiting import before_a_demand
from drayman.reasons.wording import continued, counted, lasting

_BY_OUTLOOK: Final = {
    Outlook.NEVER.value: Reason.GANG_OVERSIZED,
    Outlook.NOT_NOW.value: Reason.GANG_TOO_LARGE,
    Outlook.NOT_HERE.value: Reason.GANG_SCATTERED,
}
OF_A_POD: Final = (Outlook.NEVER, Outlook.HELD)
"""What a single pod waits for with these has nothing to do with the others."""


def flawed(flaw: Flaw) -> Headline:
    """Why a pod that says that it is in a gang is not known to be in one."""
    is_missing = flaw.kind is FlawKind.MISSING
    reason = Reason.POD_GROUP_MISSING if is_missing else Reason.GANG_INVALID
    return Headline.of(reason, _sentence(str(flaw)))


def incomplete(gang: Gang, lack: Shortfall) -> Headline:
    """Why a gang waits before a place is looked for."""
    return Headline.of(Reason.GANG_INCOMPLETE, _sentence(_has(gang, lack)))


def below_quorum(lost: Fallen, left_s: float) -> str:
    """What is said when a gang that runs has lost too many members."""
    fate = f"if it stays like that, the rest of it is ended in {lasting(left_s)}"
    return _sentence(f"{_has(lost.gang, lost.lack)}; {fate}")


def ended(lost: Fallen) -> str:
    """Why the members that are left of a gang are evicted."""
    grace = lasting(lost.gang.grace_s or 0.0)
    return _sentence(f"{_has(lost.gang, lost.lack)}, and has for {grace}: the rest of it is ended")


def late(delay: Delay) -> str:
    """What is added about a gang that waits for too long."""
    return (
        f"It has waited for {lasting(delay.waited_s)}; its time limit was {lasting(delay.limit_s)}."
    )


def _has(gang: Gang, lack: Shortfall) -> str:
    who = f"subgroup {lack.subgroup} of {gang.key}" if lack.subgroup else str(gang.key)
    if lack.counts_subgroups:
        return (
            f"{who} has {counted(lack.has, 'complete subgroup')}, and {lack.needs:,} start together"
        )
    return f"{who} has {lack.has:,} of the {lack.needs:,} pods that start together"


def unready(gang: Gang, lack: Shortfall, member: str, why: Headline) -> Headline:
    """Why a gang waits whose members exist, if some of them wait for something of their own."""
    said = incomplete(gang, lack)
    return Headline.of(said.reason, f"{said.sentence[:-1]} and are ready. Pod {member}: {why}")


class GangRefusal(Struct, frozen=True, eq=False):
    """Why a gang waits, and how near it comes."""

    headline: Headline
    nearest: Nearest | None = None
    """Set if there is no room: as many members as fit at once, slices and subgroups apart."""
    locality: LocalityRefusal | None = None
    """Set if that follows from what domains hold."""
    homes: tuple[tuple[NodeState, ...], ...] = ()
    """The nodes of each place in which the gang could be, those with the most room first."""


class GangReasons:
    """Why the gangs of one cluster wait. What its domains would hold with nothing in use is worked out once."""

    def __init__(
        self,
        state: ClusterState,
        policy: Policy = Policy.BEST,
        *,
        knows_templates: bool = True,
        planned: Planned | None = None,
    ) -> None:
        """`planned` is what the state has in use only because of a plan."""
        self._state = state
        self._policy = policy
        self._knows_templates = knows_templates
        self._planned = planned
        # What keeps pods from tainted and cordoned nodes is a decision, which may change: the hardware could do it.
        self._empty = state.emptied(untainted=True)
        self._empty_counts = CopyCounts(self._empty)

    def of(
        self, round_: Round, decider: GangDecider, outcome: Flawed | Incomplete | NoRoom
    ) -> GangRefusal:
        """Why the gang waits about which this was decided, in the state as it is."""
        match outcome:
            case Flawed(flaw):
                return GangRefusal(flawed(flaw))
            case Incomplete():
                found = GangRefusal(self._incomplete(outcome))
            case NoRoom():
                found = self._no_room(round_, decider, outcome)
        too_long = delay(self._state.gangs, outcome.gang, round_.now)
        if too_long is None:
            return found
        said = f"{found.headline.sentence} {late(too_long)}"
        return replace(found, headline=replace(found.headline, sentence=said))

    def _incomplete(self, outcome: Incomplete) -> Headline:
        gang, lack = outcome.gang, outcome.lack
        if outcome.unready is not None:
            pod, why = outcome.unready
            known = self._knows_templates
            reason = before_a_demand(self._state, pod, why, knows_templates=known)
            if reason is not None:
                return unready(gang, lack, pod.metadata.name, reason)
        return incomplete(gang, lack)

    def _no_room(self, round_: Round, decider: GangDecider, refused: NoRoom) -> GangRefusal:
        if refused.scarce is not None:
            return GangRefusal(_scarce(refused.gang, refused.scarce))
        if refused.withheld is not None:
            found = kept_out(refused.withheld, self._state)
            return GangRefusal(replace(found, sentence=f"{refused.gang.key}: {found.sentence}"))
        nearest = decider.nearest(refused)
        seated = {seat.demand.needs.uid for seat in nearest.seats}
        rest = next((d for d in refused.demands if d.needs.uid not in seated), None)
        if rest is not None and not seated:
            own = self._of_one_pod(round_, rest)
            if own is not None and own.reason.kind in OF_A_POD:
                number, key = len(refused.demands), refused.gang.key
                lead = f"None of the {number:,} pods of {key} that are to start fits anywhere."
                if number == 1:
                    lead = f"The pod of {key} that is to start fits nowhere."
                own = replace(own, sentence=f"{lead} {own.sentence}")
                return GangRefusal(own, nearest)
        locality = self._locality(decider, refused)
        next_one = None if rest is None else self._next_one(round_, decider, nearest, rest)
        said = _no_room(refused, nearest, locality, next_one)
        if len(seated) >= refused.needed:
            # It is its parts that find no place: there is nothing to be shown.
            nearest = replace(nearest, seats=())
        return GangRefusal(said, nearest, locality, decider.homes(refused))

    def _locality(self, decider: GangDecider, refused: NoRoom) -> LocalityRefusal | None:
        """What domains hold: with nothing in use, if that is not enough either."""
        now = decider.counted(refused)
        if now is None:
            return None
        ever = None
        if not refused.has_alternatives:
            ever = decider.counted(refused, self._empty, self._empty_counts)
        if ever is not None:
            found = locality_refusal(ever.rooms, ever.request, ever.numbers, names=ever.names)
            # Members that run in several domains may end: then all of it can be in one.
            if found is not None and len(found.runs_in) < 2:
                return self._respelt(replace(found, outlook=Outlook.NEVER.value))
        return locality_refusal(now.rooms, now.request, now.numbers, names=now.names)

    def _respelt(self, found: LocalityRefusal) -> LocalityRefusal:
        """A level without a single domain is often misspelt: labels of nodes that come near are named."""
        if not found.level or found.domains or not self._state.nodes:
            return found
        labels = Counter(key for node in self._state.nodes.values() for key in node.facts.labels)
        near = [key for key, _ in similar(found.key, labels)]
        meant = f"{found.sentence[:-1]}; did you mean {' or '.join(near)}?"
        return replace(found, sentence=meant) if near else found

    def _of_one_pod(self, round_: Round, demand: Demand) -> Headline | None:
        """Why a member finds no node, even if it is the only one."""
        found = round_.find(demand)
        if not isinstance(found, NotFound):
            return None
        return Headlines(self._state, self._policy, self._planned).of(demand, found)

    def _next_one(
        self, round_: Round, decider: GangDecider, nearest: Nearest, rest: Demand
    ) -> Headline | None:
        """Why one more member does not fit beside those that do; None if it is not nodes that refuse it."""
        planned = self._planned or self._other_members()
        with self._state.trial():
            for seat in nearest.seats:
                decider.seating.take(seat)
            placer = round_.placer(rest)
            here = {node.facts.name: placer.verdict_on(rest, node) for node in nearest.nodes}
            if not here or FITS in here.values():
                return None
            headlines = Headlines(self._state, self._policy, planned)
            if len(here) == len(self._state.nodes):
                return headlines.of(rest, NotFound(here))
            found = headlines.among(rest, here)
        return found or self._of_one_pod(round_, rest)

    def _other_members(self) -> Planned:
        """What others of the gang would take is not in use."""
        before = cache(self._state.without_pods())
        nodes = self._state.nodes
        return Planned(lambda name: before().view(nodes[name]), "other pods of the gang")


def _no_room(
    refused: NoRoom, nearest: Nearest, locality: LocalityRefusal | None, next_one: Headline | None
) -> Headline:
    key, fitting = refused.gang.key, f"{len(nearest.seats):,} of {_pods(refused)}"
    where = f" in {nearest.place}" if nearest.place else ""
    if locality is not None:
        reason = _BY_OUTLOOK[locality.outlook]
        said = _by_counting(refused, nearest, locality)
    elif refused.gave_up:
        reason = Reason.SEARCH_LIMIT
        said = f"{key}: the search for places was given up; {fitting} were found to fit at once{where}."
    else:
        reason = Reason.GANG_SCATTERED if nearest.place else Reason.GANG_TOO_LARGE
        said = f"{key}: {fitting} fit at once{where}."
        if len(nearest.seats) >= refused.needed:
            all_of_it = counted(refused.needed, "pod")
            said = (
                f"{key}: {all_of_it} fit at once{where}, but not with each part where it has to be."
            )
    if next_one is not None:
        beside = where if locality is not None else ""
        is_never = locality is not None and locality.outlook == Outlook.NEVER.value
        # Domains were counted with nothing in use; nodes speak of the cluster as it is.
        lead = "As of now, the next one" if is_never else "The next one"
        said = f"{said} {lead}{beside}: {next_one.sentence}"
    return Headline.of(reason, f"{said[:1].upper()}{said[1:]}")


def _scarce(gang: Gang, found: Scarce) -> Headline:
    is_never = found.there_is.amount < found.wants.amount
    reason = Reason.GANG_OVERSIZED if is_never else Reason.GANG_TOO_LARGE
    has = f"the cluster has {found.there_is}" if is_never else f"{found.free} is free"
    said = f"{gang.key} needs {found.wants} of {found.resource} by its minResources, and {has}"
    return Headline.of(reason, _sentence(said))


def _by_counting(refused: NoRoom, nearest: Nearest, locality: LocalityRefusal) -> str:
    key, is_never = refused.gang.key, locality.outlook == Outlook.NEVER.value
    held = locality.sentence
    if is_never and locality.domains:
        held = f"Even with nothing in use, {continued(held)}"
    if locality.level:
        started = "has started and " if refused.is_joining else ""
        return f"{key} {started}has to be in one {locality.level}. {held}"
    if is_never:
        return f"{key}: {continued(held)}"
    if refused.is_joining:
        return f"{key} has started, and there is no room for another pod of it."
    return f"{key}: {len(nearest.seats):,} of {_pods(refused)} fit at once."


def _pods(refused: NoRoom) -> str:
    return counted(refused.needed, "pod")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
