"""What holds for every cluster, whatever its queues and groups: checked by counting afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.quota.shares.cycle import Action
from drayman.simulate.queue_scenarios import (
    GivenGroup,
    GivenNode,
    GivenQueue,
    Result,
    Scenario,
    settled,
)
from drayman.simulate.queue_scenarios import replayed as replay
from quota.shares.town import group, queue
from rounds import rounds

LEAVES = ("p", "q", "r", "s")


@st.composite
def queue_trees(draw: st.DrawFn) -> tuple[GivenQueue, ...]:
    """Two departments with two projects each."""
    amounts = st.sampled_from([-1, 0, 1, 2, 3, 5])

    def one(name: str, parent: str | None) -> GivenQueue:
        return queue(
            name,
            draw(amounts),
            parent=parent,
            limit=draw(st.sampled_from([-1, -1, 2, 4])),
            weight=draw(st.integers(0, 3)),
            age=draw(st.integers(1, 4)),
            priority=draw(st.sampled_from([50, 100, 100])),
        )

    departments = [one("d1", None), one("d2", None)]
    return (*departments, *(one(n, "d1" if n in "pq" else "d2") for n in LEAVES))


@st.composite
def towns(draw: st.DrawFn) -> Scenario:
    """A few nodes, some of whose GPUs are in use by groups that have at least their minimum."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    free = {f"n{number}": size for number, size in enumerate(sizes)}
    groups: list[GivenGroup] = []
    for number in range(draw(st.integers(1, 7))):
        size = draw(st.sampled_from([1, 1, 1, 2]))
        count = draw(st.integers(1, 4))
        places = [name for name, room in free.items() for _ in range(room // size)]
        runs = draw(st.booleans()) and len(places) >= count
        for name in places[:count] if runs else ():
            free[name] -= size
        pods = [f"{size}@{places[n]}" if runs else f"{size}" for n in range(count)]
        groups.append(
            group(
                f"g{number}",
                draw(st.sampled_from(LEAVES)),
                *pods,
                least=draw(st.integers(0, count)),
                priority=draw(st.sampled_from([25, 50, 75, 100])),
                age=draw(st.integers(1, 5)),
            )
        )
    nodes = tuple(GivenNode(name=f"n{n}", gpus=size) for n, size in enumerate(sizes))
    return Scenario(name="t", nodes=nodes, queues=draw(queue_trees()), pod_groups=tuple(groups))


@dataclass(frozen=True, slots=True)
class Books:
    """A scenario, counted anew."""

    scenario: Scenario

    def used(self, running: dict[str, str], *, firm: bool = False) -> Counter[str]:
        """By each queue with those below it."""
        parents = {each.name: each.parent_queue for each in self.scenario.queues}
        used: Counter[str] = Counter()
        for each in self.scenario.pod_groups:
            if firm and each.priority < 100:
                continue
            total = sum(pod.gpus for pod in each.pods if pod.name in running)
            at: str | None = each.queue
            while at is not None:
                used[at] += total
                at = parents[at]
        return used

    @property
    def before(self) -> dict[str, str]:
        pods = (pod for each in self.scenario.pod_groups for pod in each.pods)
        return {pod.name: pod.node_name for pod in pods if pod.node_name}

    def faults(self, result: Result) -> Iterator[str]:
        """What is never right."""
        after = dict(result.placement)
        room = {node.name: node.gpus for node in self.scenario.nodes}
        for each in self.scenario.pod_groups:
            for pod in each.pods:
                if pod.name in after:
                    room[after[pod.name]] -= pod.gpus
            left = sum(
                self.before[n] != after.get(n) for n in self.before if n.startswith(f"{each.name}-")
            )
            evicted = result.evicted.get(each.name, 0)
            if left > evicted:
                yield f"{each.name}: {left} pods are not where they were, {evicted} were evicted"
            if evicted and each.priority >= 100:
                yield f"{each.name} is not preemptible"
            runs = sum(pod.name in after for pod in each.pods)
            if 0 < runs < max(1, each.min_member or 0):
                yield f"{each.name} runs with {runs} pods"
        yield from (f"{name} is too full" for name, rest in room.items() if rest < 0)
        used, firm = self.used(after), self.used(after, firm=True)
        for each in self.scenario.queues:
            most = max(each.gpu.limit, self.used(self.before)[each.name])
            if each.gpu.limit >= 0 and used[each.name] > most:
                yield f"{each.name} exceeds its limit"
            most = max(each.gpu.quota, self.used(self.before, firm=True)[each.name])
            if each.gpu.quota >= 0 and firm[each.name] > most:
                yield f"{each.name} exceeds its quota with work that is not preemptible"


@settings(max_examples=rounds(60))
@given(towns())
def test_every_cluster_comes_to_rest_and_breaks_no_rule(scenario: Scenario) -> None:
    assert list(Books(scenario).faults(replay(scenario))) == []


@settings(max_examples=rounds(30))
@given(towns())
def test_at_rest_nothing_changes_any_more(scenario: Scenario) -> None:
    """What is at rest stays as it is, if it is decided about once more from there."""
    result = replay(scenario)
    after = result.placement
    again = Scenario(
        name="again",
        nodes=scenario.nodes,
        queues=scenario.queues,
        pod_groups=tuple(
            group(
                each.name,
                each.queue,
                *(
                    f"{p.gpus}@{after[p.name]}" if p.name in after else f"{p.gpus}"
                    for p in each.pods
                ),
                least=each.min_member,
                priority=each.priority,
                age=each.created_seconds_ago,
            )
            for each in scenario.pod_groups
        ),
    )
    books = Books(again)
    found = replay(again)
    assert not any(found.first.bound.values())
    assert list(books.faults(found)) == []


@settings(max_examples=rounds(60))
@given(towns())
def test_reclaiming_takes_no_queue_below_its_quota_by_parts(scenario: Scenario) -> None:
    """Where every group can be taken apart, whoever loses a pod to another queue is beyond its quota before."""
    singly = Scenario(
        name="s",
        nodes=scenario.nodes,
        queues=scenario.queues,
        pod_groups=tuple(
            group(
                e.name,
                e.queue,
                *(f"1@{p.node_name}" if p.node_name else "1" for p in e.pods),
                priority=e.priority,
                age=e.created_seconds_ago,
            )
            for e in scenario.pod_groups
        ),
    )
    books = Books(singly)
    queues = {each.name: each for each in singly.queues}
    leaf = {each.name: each.queue for each in singly.pod_groups}
    running = books.before
    for actions in settled(singly).cycles:
        running |= actions.bound
        there = running | dict(actions.nominated)
        for each in actions.evicted:
            if each.worker in actions.nominated:
                continue  # it is moved
            mine, theirs = leaf[each.beneficiary], leaf[each.worker.partition("-")[0]]
            if queues[mine].parent_queue != queues[theirs].parent_queue:
                theirs = queues[theirs].parent_queue or ""
            if each.action is Action.RECLAIM:
                quota = queues[theirs].gpu.quota
                assert 0 <= quota < books.used(there)[theirs]
            del there[each.worker]
        gone = {each.worker for each in actions.evicted}
        running = {name: node for name, node in running.items() if name not in gone}


@settings(max_examples=rounds(20))
@given(towns())
def test_the_order_of_lists_does_not_matter(scenario: Scenario) -> None:
    """Groups and queues in another order: as much runs in every group, if no two groups or queues are of one age."""
    groups = [
        group(
            e.name,
            e.queue,
            *(f"{p.gpus}@{p.node_name}" if p.node_name else f"{p.gpus}" for p in e.pods),
            least=e.min_member,
            priority=e.priority,
            age=100 + n,
        )
        for n, e in enumerate(scenario.pod_groups)
    ]
    queues = [
        queue(
            e.name,
            e.gpu.quota,
            parent=e.parent_queue,
            limit=e.gpu.limit,
            age=100 + n,
            priority=e.priority,
        )
        for n, e in enumerate(scenario.queues)
    ]

    def running(groups: list[GivenGroup], queues: list[GivenQueue]) -> Counter[str]:
        town = Scenario(
            name="o", nodes=scenario.nodes, queues=tuple(queues), pod_groups=tuple(groups)
        )
        return Counter(name.partition("-")[0] for name in replay(town).placement)

    assert running(groups, queues) == running(groups[::-1], queues[::-1])


@st.composite
def crowded(draw: st.DrawFn) -> Scenario:
    """Queues side by side that all want more than there is, in single pods, and hold the cluster in any proportion."""
    gpus = draw(st.integers(1, 10))
    names = [f"q{n}" for n in range(draw(st.integers(2, 4)))]
    holders = draw(st.lists(st.sampled_from(names), min_size=gpus, max_size=gpus))
    quotas = {name: draw(st.integers(0, 4)) for name in names}
    while sum(quotas.values()) > gpus:
        quotas[max(quotas, key=lambda name: quotas[name])] -= 1
    return Scenario(
        name="c",
        nodes=(GivenNode(name="n", gpus=gpus),),
        queues=tuple(
            queue(name, quotas[name], weight=draw(st.integers(1, 4)), age=100 + number)
            for number, name in enumerate(names)
        ),
        pod_groups=(
            *(group(f"r{n}", name, "1@n", age=1000 - n) for n, name in enumerate(holders)),
            *(group(f"w{name}{n}", name, "1", age=500 - n) for name in names for n in range(gpus)),
        ),
    )


@settings(max_examples=rounds(40))
@given(crowded())
def test_queues_end_with_their_fair_shares(scenario: Scenario) -> None:
    """Whoever had what before: what runs of each queue is what the division gives it."""
    result = replay(scenario)
    used = Books(scenario).used(dict(result.placement))
    assert {each.name: used[each.name] for each in scenario.queues} == result.fair_share
