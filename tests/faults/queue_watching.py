"""Whoever gets quota gets what there is: judged at each revision at which a Workload begins to hold quota, or holds more.

Quota that is lowered is not taken back from those who have it. Whoever decides may also not have heard yet of a change that was just made,
so that what held within the last revisions is an excuse, and nothing else is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from faults.queue_invariants import held_by, holds_quota, queue_held, used_by_queue
from faults.quota_tree import FlavorResource, Node, Quota, Tree, quotas_of
from faults.snapshot import Object, name_of

HEARING: Final = 40
"""Within how many revisions a change of a queue is heard of."""


class QuotaWatch:
    """Follows who holds quota, and what queues have had."""

    def __init__(self) -> None:
        self._held: dict[str, dict[FlavorResource, Fraction]] = {}
        self._versions: dict[Node, list[tuple[int, Object]]] = defaultdict(list)
        """Of each queue and cohort its last specs, with the revision at which each was replaced; 0 for one that has not been."""
        self.gains = 0
        """How often somebody got quota."""
        self.evictions: Counter[str] = Counter()
        """How often it was taken from somebody, by reason."""
        self._evicted: set[str] = set()

    def start_over(
        self, workloads: Sequence[Object], queues: Sequence[Object], cohorts: Sequence[Object]
    ) -> None:
        """Take things as they are after a gap."""
        self._versions.clear()
        self._note(0, queues, cohorts)
        self._held = _held(workloads)

    def judge(
        self,
        revision: int,
        workloads: Sequence[Object],
        queues: Sequence[Object],
        cohorts: Sequence[Object],
    ) -> Iterator[str]:
        """What is wrong with the quota that was given at this revision."""
        self._note(revision, queues, cohorts)
        self._count_evictions(workloads)
        held = _held(workloads)
        gained = [uid for uid, amounts in held.items() if _is_more(amounts, self._held.get(uid))]
        new = {uid for uid in gained if uid not in self._held}
        self._held = held
        if not gained:
            return
        self.gains += len(gained)
        known: dict[Node, list[dict[FlavorResource, Quota]]] = {
            node: [quotas_of(item) for item in self._recent(node, revision)]
            for node in self._versions
        }
        tree = Tree.of(queues, cohorts).with_more(known)
        by_uid = {each["metadata"]["uid"]: each for each in workloads}
        names = ", ".join(name_of(by_uid[uid]) for uid in gained)
        others = [each for each in workloads if each["metadata"]["uid"] not in gained]
        # What was lowered below what others have is exceeded without them, and is not their doing.
        excused = set(tree.exceeded(used_by_queue(others)))
        for wrong in tree.exceeded(used_by_queue(workloads)):
            if wrong not in excused:
                yield f"{names} got quota, and {wrong}"
        for uid in sorted(new):
            queue = queue_held(by_uid[uid])
            recent = self._recent(("ClusterQueue", queue), revision)
            if all(item["spec"].get("stopPolicy", "None") != "None" for item in recent):
                yield f"{name_of(by_uid[uid])} got quota of {queue}, which is stopped or gone"

    def _note(self, revision: int, queues: Sequence[Object], cohorts: Sequence[Object]) -> None:
        for kind, items in (("ClusterQueue", queues), ("Cohort", cohorts)):
            for item in items:
                versions = self._versions[kind, item["metadata"]["name"]]
                if versions and versions[-1][1]["spec"] == item["spec"]:
                    continue
                if versions:
                    versions[-1] = (revision, versions[-1][1])
                versions.append((0, item))

    def _count_evictions(self, workloads: Sequence[Object]) -> None:
        reasons = {
            each["metadata"]["uid"]: condition["reason"]
            for each in workloads
            for condition in each.get("status", {}).get("conditions") or ()
            if condition["type"] == "Evicted" and condition["status"] == "True"
        }
        self.evictions.update(reasons[uid] for uid in reasons.keys() - self._evicted)
        self._evicted = set(reasons)

    def _recent(self, node: Node, revision: int) -> list[Object]:
        """What was known of a node within the last revisions."""
        return [
            item
            for until, item in self._versions.get(node, ())
            if not until or until > revision - HEARING
        ]


def _held(workloads: Sequence[Object]) -> dict[str, dict[FlavorResource, Fraction]]:
    return {each["metadata"]["uid"]: held_by(each) for each in workloads if holds_quota(each)}


def _is_more(
    now: dict[FlavorResource, Fraction], before: dict[FlavorResource, Fraction] | None
) -> bool:
    return before is None or any(value > before.get(key, 0) for key, value in now.items())
