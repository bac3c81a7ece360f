"""What would give a workload its quota: each tried on the engine, with everything else that waits in its place, before it is named.

Those who hold what it lacks may end, alone or several of them; its queue may get more quota, or be allowed to borrow more; a queue that is
stopped may go on; it may become more important than those before it. Who else would be served by the same change is part of the trial:
a change that helps only others is not named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api import codec
from drayman.api.custom_groups import spec_of
from drayman.api.errors import ApiError
from drayman.api.kueue import ClusterQueue, ClusterQueueSpec, LocalQueue, QueueObject
from drayman.api.kueue_workload import Workload
from drayman.api.struct import Json
from drayman.explain.answer import Operation, Remedy
from drayman.explain.queue_answer import Need
from drayman.explain.queues.settling import Settled, supposed, without
from drayman.explain.queues.standing import Line
from drayman.explain.remedies.commands import patch_command
from drayman.quota.amounts import FlavorResource, amount_of, quantity_of
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.demands import Unpriced
from drayman.quota.entries import Entry
from drayman.quota.tree.nodes import Node
from drayman.reasons.reason import Reason
from drayman.reasons.wording import and_list

MOST_ENDINGS: Final = 3
"""How many workloads are named of which the end of one would be enough."""
MOST_TRIED: Final = 24
"""Of how many workloads it is tried what their end would do."""
_HIGHEST: Final = 2**31 - 1


class Help(Struct, frozen=True):
    """What would help."""

    remedies: tuple[Remedy, ...]
    untried: str = ""


def remedies_for(line: Line, key: str) -> Help:
    """What would give a workload quota, as trials have confirmed. The cheapest for others first."""
    found = _Search(line, key)
    return Help(tuple(found.remedies()), found.untried)


class _Search:
    def __init__(self, line: Line, key: str) -> None:
        self._line = line
        self._queues = line.queues
        self._key = key
        self.untried = ""

    def remedies(self) -> Iterator[Remedy]:
        entry = self._line.entry(self._key)
        if entry is None or entry.holding is not None:
            return
        reason = self._line.headline(self._key).reason
        queue = self._line.queue_of(entry)
        if reason is Reason.WORKLOAD_INACTIVE:
            yield from self._activate()
        elif reason is Reason.QUEUE_INACTIVE:
            yield from self._resume(entry, queue)
        elif reason is Reason.QUOTA_WITHOUT_ROOM:
            self.untried = "Changes that would make room on nodes were not tried."
        elif queue is not None and queue.node is not None and self._key in queue.waiting:
            yield from self._for_quota(entry, queue, reason)

    def _for_quota(
        self, entry: Entry, queue: ClusterQueueState, reason: Reason
    ) -> Iterator[Remedy]:
        needs = self._line.needs(entry, queue)
        if reason is not Reason.QUOTA_TOO_SMALL:
            yield from self._endings(entry, queue, needs)
            yield from self._priority(entry, queue)
        yield from self._quota(queue, needs)

    # Others end.

    def _endings(
        self, entry: Entry, queue: ClusterQueueState, needs: Iterable[Need]
    ) -> Iterator[Remedy]:
        every = self._candidates(entry, queue, needs)
        candidates = every[:MOST_TRIED]
        if len(every) > len(candidates):
            self.untried = f"Only {MOST_TRIED} of {len(every):,} workloads with quota were tried."
        enough = 0
        for key in candidates:
            if self._helps(without(self._queues, (key,))):
                enough += 1
                yield self._gone(key)
            if enough == MOST_ENDINGS:
                return
        together = () if enough else self._together(candidates)
        if together:
            yield _ending(together)

    def _candidates(
        self, entry: Entry, queue: ClusterQueueState, needs: Iterable[Need]
    ) -> list[str]:
        """Who is first in a strict queue, and those that hold what it lacks: of its own queue first, the least important before others."""
        ahead: list[str] = []
        if queue.waiting.strict:
            ahead = [each for each in self._line.in_order(queue)[:1] if each != entry.key]
        contested = [
            FlavorResource(need.flavor, need.resource) for need in needs if need.may_become_free
        ]
        holders = [
            (name != queue.name, each.facts.priority, -_size(each, contested), each.key)
            for name in _tree(queue.place)
            for each in self._queues.state.books.queues[name].holders.values()
            if _size(each, contested)
        ]
        return [*ahead, *(key for *_, key in sorted(holders))]

    def _together(self, candidates: list[str]) -> tuple[str, ...]:
        """A set of workloads whose end is enough, none of which could stay."""
        chosen: list[str] = []
        for key in candidates:
            chosen.append(key)
            if self._helps(without(self._queues, chosen)):
                break
        else:
            return ()
        for key in tuple(chosen[:-1]):
            rest = [each for each in chosen if each != key]
            if self._helps(without(self._queues, rest)):
                chosen = rest
        return tuple(chosen)

    def _gone(self, key: str) -> Remedy:
        """One workload, whose end or absence is enough."""
        entry = self._line.entry(key)
        if entry is not None and entry.holding is not None:
            return _ending((key,))
        patch = {"op": "add", "path": "/spec/active", "value": False}
        text = f"Deactivate workload {key}, which is first in the queue and blocks it."
        return _patching(text, _patch_of(self._queues.workloads[key], patch))

    # The workload changes.

    def _priority(self, entry: Entry, queue: ClusterQueueState) -> Iterator[Remedy]:
        """As important as it takes to come first."""
        ordered = self._line.in_order(queue)
        before = [self._queues.state.entries[each] for each in ordered[: ordered.index(self._key)]]
        rivals = [each.facts.priority for each in (*before, *queue.holders.values())]
        own = entry.facts.priority
        highest = max(rivals, default=own)
        if highest < own or highest >= _HIGHEST:
            return
        workload = self._queues.workloads[self._key]
        patch = {"op": "add", "path": "/spec/priority", "value": highest + 1}
        if self._helps(self._with_workload(_patched(workload, "priority", highest + 1))):
            yield _patching(
                f"Raise the priority of the workload from {own:,} to {highest + 1:,}.",
                _patch_of(workload, patch),
            )

    def _activate(self) -> Iterator[Remedy]:
        workload = self._queues.workloads[self._key]
        patch = {"op": "add", "path": "/spec/active", "value": True}
        if self._helps(self._with_workload(_patched(workload, "active", True))):
            yield _patching(
                "Activate the workload.",
                _patch_of(workload, patch),
            )

    def _with_workload(self, changed: Workload) -> Settled:
        state, now = self._queues.state, self._queues.now
        before = self._queues.workloads[self._key]

        def undo() -> None:
            state.remove_workload(self._key)
            state.set_workload(before, now)

        return supposed(self._queues, lambda: state.set_workload(changed, now), undo)

    # Its queue changes.

    def _resume(self, entry: Entry, queue: ClusterQueueState | None) -> Iterator[Remedy]:
        """Let a stopped queue go on: the cluster queue, the local queue, or both."""
        state, now = self._queues.state, self._queues.now
        cluster = None if queue is None else self._queues.cluster_queues.get(queue.name)
        local = next(
            (
                each
                for each in self._queues.world.objects.local_queues
                if f"{each.metadata.namespace}/{each.metadata.name}" == entry.facts.queue
            ),
            None,
        )
        stopped = [each for each in (cluster, local) if each is not None and _is_stopped(each)]
        if not stopped:
            return

        def tell(value: ClusterQueue | LocalQueue) -> None:
            if isinstance(value, ClusterQueue):
                state.set_cluster_queue(value, now)
            else:
                state.set_local_queue(value, now)

        def change() -> None:
            for each in stopped:
                tell(_resumed(each))

        def undo() -> None:
            for each in stopped:
                tell(each)

        if self._helps(supposed(self._queues, change, undo)):
            step = {"op": "add", "path": "/spec/stopPolicy", "value": "None"}
            names = [f"{each.kind} {each.metadata.name}" for each in stopped]
            yield _patching(
                f"Let {and_list(names)} go on.",
                *(_patch_of(each, step) for each in stopped),
            )

    def _quota(self, queue: ClusterQueueState, needs: Iterable[Need]) -> Iterator[Remedy]:
        """More quota in one flavor, or a higher limit for what may be borrowed."""
        value = self._queues.cluster_queues.get(queue.name)
        if value is None:
            return
        by_flavor: dict[str, list[Need]] = {}
        for need in needs:
            if not need.mismatch:
                by_flavor.setdefault(need.flavor, []).append(need)
        for flavor, those in by_flavor.items():
            short = {need.resource: _short(need) for need in those if _short(need)}
            limited = {
                resource: amount
                for resource, amount in short.items()
                if queue.place.quota(FlavorResource(flavor, resource)).borrowing_limit is not None
            }
            for field in ("borrowingLimit", "nominalQuota") if short else ():
                if field == "borrowingLimit" and limited != short:
                    continue
                found = list(self._raised(value, flavor, short, field))
                if not found and (more := self._with_those_ahead(queue, short)) != short:
                    found = list(self._raised(value, flavor, more, field))
                yield from found

    def _with_those_ahead(
        self, queue: ClusterQueueState, short: Mapping[str, int]
    ) -> Mapping[str, int]:
        """What it lacks, and what those ahead of it would take first."""
        more = dict(short)
        ordered = self._line.in_order(queue)
        for key in ordered[: min(ordered.index(self._key), MOST_TRIED)]:
            demands = self._queues.state.entries[key].facts.demands
            if key in self._line.settled.given or isinstance(demands, Unpriced):
                continue
            for resource, amount in self._line.wanted_by(demands, counts_pods=True).items():
                if resource in more:
                    more[resource] += amount
        return more

    def _raised(
        self, value: ClusterQueue, flavor: str, more: Mapping[str, int], field: str
    ) -> Iterator[Remedy]:
        try:
            steps, changed = _with_more(value, flavor, more, field)
        except ApiError:
            return
        state, now = self._queues.state, self._queues.now
        settled = supposed(
            self._queues,
            lambda: state.set_cluster_queue(changed, now),
            lambda: state.set_cluster_queue(value, now),
        )
        if self._helps(settled):
            name = value.metadata.name
            amounts = and_list([f"{quantity_of(each, more[each])} {each}" for each in sorted(more)])
            what = "quota" if field == "nominalQuota" else "borrowing limit"
            yield _patching(
                f"Raise the {what} of ClusterQueue {name} in flavor {flavor} by {amounts}.",
                _patch_of(value, *steps),
            )

    def _helps(self, settled: Settled) -> bool:
        return self._key in settled.given


def _size(entry: Entry, contested: Iterable[FlavorResource]) -> int:
    usage = {} if entry.holding is None else entry.holding.usage.quota
    return sum(usage.get(what, 0) for what in contested)


def _tree(place: Node) -> Iterator[str]:
    return (node.name for node in place.root.queues())


def _short(need: Need) -> int:
    resource = need.resource
    return amount_of(resource, need.lacking)


def _with_more(
    value: ClusterQueue, flavor: str, more: Mapping[str, int], field: str
) -> tuple[tuple[Mapping[str, object], ...], ClusterQueue]:
    """A cluster queue with so much more of its quota or limit, and the steps of the patch. Raises DecodeError."""
    spec = spec_of(ClusterQueueSpec, value)
    body: Json = codec.parse_json(codec.encode_json(value.spec))
    steps: list[Mapping[str, object]] = []
    for i, group in enumerate(spec.resource_groups):
        for j, flavors in enumerate(group.flavors):
            for k, quota in enumerate(flavors.resources):
                if flavors.name != flavor or quota.name not in more:
                    continue
                before = quota.nominal_quota if field == "nominalQuota" else quota.borrowing_limit
                amount = 0 if before is None else amount_of(quota.name, before)
                text = str(quantity_of(quota.name, amount + more[quota.name]))
                body["resourceGroups"][i]["flavors"][j]["resources"][k][field] = text
                path = f"/spec/resourceGroups/{i}/flavors/{j}/resources/{k}/{field}"
                steps.append({"op": "add", "path": path, "value": text})
    return tuple(steps), replace(value, spec=body)


def _is_stopped(value: ClusterQueue | LocalQueue) -> bool:
    policy = value.spec.get("stopPolicy") if isinstance(value.spec, dict) else None
    return policy not in (None, "", "None")


def _resumed(value: ClusterQueue | LocalQueue) -> ClusterQueue | LocalQueue:
    return replace(value, spec={**value.spec, "stopPolicy": "None"})


def _patched(workload: Workload, field: str, value: Json) -> Workload:
    spec = workload.spec if isinstance(workload.spec, dict) else {}
    return replace(workload, spec={**spec, field: value})


def _ending(keys: tuple[str, ...]) -> Remedy:
    """Wait for the end of workloads."""
    names = and_list(keys, most=len(keys))
    if len(keys) == 1:
        sentence = f"Wait until workload {names} has ended, or end it."
    else:
        sentence = f"Wait until workloads {names} have ended, or end them."
    operations = []
    for key in keys:
        namespace, _, name = key.partition("/")
        operations.append(Operation(verb="wait", kind="Workload", name=name, namespace=namespace))
    return Remedy(sentence=sentence, operations=tuple(operations))


def _patch_of(value: QueueObject, *steps: Mapping[str, object]) -> Operation:
    metadata = value.metadata
    kind = str(codec.to_dict(value)["kind"])
    return Operation(
        verb="patch", kind=kind, name=metadata.name, namespace=metadata.namespace, patch=steps
    )


def _patching(sentence: str, *operations: Operation) -> Remedy:
    commands = tuple(patch_command(each) for each in operations)
    return Remedy(sentence=sentence, operations=operations, commands=commands)
