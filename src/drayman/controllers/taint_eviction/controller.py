"""The loop of the eviction controller: which pods have tainted devices, until when that is tolerated, and then the eviction.

Pods that have to go wait in a table with the time at which they do, and in the queue until then. After any change (a taint, a rule, a
claim, the pod) the pods that it concerns are looked at again: they may have to go earlier, later, or not at all. Disruption budgets are not
consulted, as in Kubernetes: a broken device does not get better by waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from drayman.api.core import Pod
from drayman.api.pods import claim_keys, has_claims, is_leaving
from drayman.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.bounded import Bounded
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Informer, Notice
from drayman.cluster.informers import Informers
from drayman.cluster.options import ListOptions, WriteOptions
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import (
    DEVICE_TAINT_RULES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from drayman.cluster.workqueue import WorkQueue
from drayman.controllers.taint_eviction.counting import count
from drayman.controllers.taint_eviction.evicting import evict
from drayman.controllers.taint_eviction.pools import PoolId, Pools
from drayman.controllers.taint_eviction.rule_status import (
    PERIOD,
    Counts,
    condition_patch,
    new_condition,
    wait_before_update,
)
from drayman.controllers.taint_eviction.taints import Eviction, Tainted, pod_eviction
from drayman.inventory.taints import NO_EXECUTE

_log: Final = logging.getLogger(__name__)

NAME: Final = "device-taint-eviction-controller"
REASON: Final = "DeviceTaintManagerEviction"
AT_ONCE: Final = 10
"""Evictions at the same time."""
_REMEMBERED: Final = 10_000
"""Pods that were evicted: one that comes up again, from a cache that is behind, is left alone."""


class Key(NamedTuple):
    """A pod that may have to go, or a rule whose status may have to be written. The uid distinguishes it from a later one of that name."""

    sort: Literal["pod", "rule"]
    namespace: str
    name: str
    uid: str


class TaintEvictionController:
    """Evicts pods from tainted devices. `run` may be called again after it failed."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._informers = informers
        self._now = now
        self._queue: WorkQueue[Key] = WorkQueue()
        self._recorder = EventRecorder(client, NAME)
        self._rules: dict[str, DeviceTaintRule] = {}
        self._pools = Pools()
        self._tainted = Tainted(self._pools, self._rules)
        self._due: dict[Key, Eviction] = {}
        self._evicted: Bounded[str, None] = Bounded(_REMEMBERED)
        self._evicted_by: Counter[str] = Counter()
        self._is_ready = False
        self._pods = informers.informer(PODS, indexers={"claim": claim_keys})
        self._claims = informers.informer(RESOURCE_CLAIMS, indexers={"device pool": _pools_of})
        self._slices = informers.informer(RESOURCE_SLICES)
        self._known_rules: Informer[DeviceTaintRule] | None = None
        self._pods.add_handler(self._pod_changed)
        self._claims.add_handler(lambda notice: self._consider_users(notice.object))
        self._slices.add_handler(self._slice_changed)

    async def run(self) -> None:
        """Works until cancelled."""
        for informer in (self._pods, self._claims, self._slices):
            await informer.wait_synced()
        await self._follow_rules()
        self._is_ready = True
        for pod in self._pods.cache:
            self._consider(pod)
        async with self._recorder:
            while True:
                keys = await self._queue.take(AT_ONCE)
                try:
                    # A rule reports what it is about to do before it is done.
                    for key in keys:
                        if key.sort == "rule":
                            await self._attend(key)
                    await asyncio.gather(*(self._attend(key) for key in keys if key.sort == "pod"))
                finally:
                    for key in keys:
                        self._queue.done(key)

    async def _follow_rules(self) -> None:
        """Rules are an API of their own, which a server may not have: then only the taints in slices count."""
        if self._known_rules is not None:
            return
        try:
            await self._client.list(DEVICE_TAINT_RULES, options=ListOptions(limit=1))
        except NotFoundError:
            _log.info("the server has no DeviceTaintRules")
            return
        self._known_rules = self._informers.informer(DEVICE_TAINT_RULES)
        self._known_rules.add_handler(self._rule_changed)
        await self._informers.start()
        await self._known_rules.wait_synced()

    # --- What changed -----------------------------------------------------------------------------

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        if notice.type == "DELETED":
            self._due.pop(_key_of(notice.object), None)
        else:
            self._consider(notice.object)

    def _slice_changed(self, notice: Notice[ResourceSlice]) -> None:
        if notice.type == "DELETED":
            changed = self._pools.remove(notice.object.metadata.name)
        else:
            changed = self._pools.put(notice.object)
        for pool in changed:
            for claim in self._claims.cache.by_index("device pool", _index_of(pool)):
                self._consider_users(claim)

    def _rule_changed(self, notice: Notice[DeviceTaintRule]) -> None:
        rule, old = notice.object, notice.old
        if old is not None and old.spec == rule.spec:
            return
        name, uid = rule.metadata.name, rule.metadata.uid
        before = self._rules.pop(name, None)
        if notice.type == "DELETED":
            self._evicted_by.pop(uid, None)
        else:
            self._queue.add(Key("rule", "", name, uid))
            if rule.spec.taint.effect == NO_EXECUTE:
                self._rules[name] = rule
        if before is not None or name in self._rules:
            for claim in self._claims.cache:
                self._consider_users(claim)

    def _consider_users(self, claim: ResourceClaim) -> None:
        if self._is_ready and (self._tainted or self._due):
            meta = claim.metadata
            for pod in self._pods.cache.by_index("claim", f"{meta.namespace}/{meta.name}"):
                self._consider(pod)

    def _consider(self, pod: Pod) -> None:
        """Notes whether and when a pod has to go."""
        if not self._is_ready or not (self._tainted or self._due) or not has_claims(pod):
            return
        key = _key_of(pod)
        eviction = pod_eviction(pod, self._find_claim, self._tainted)
        before = self._due.get(key)
        if eviction == before or pod.metadata.uid in self._evicted:
            return
        if eviction is None:
            del self._due[key]
            if not is_leaving(pod):
                self._record(pod, "Cancelling deletion")
            return
        self._due[key] = eviction
        self._queue.add_after(key, (eviction.when - self._now()).total_seconds())
        for uid in eviction.rule_uids():
            self._ask_for_status(uid)

    def _find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self._claims.cache.get(name, namespace)

    def _ask_for_status(self, rule_uid: str, seconds: float = 0.0) -> None:
        for rule in self._rules.values():
            if rule.metadata.uid == rule_uid:
                self._queue.add_after(Key("rule", "", rule.metadata.name, rule_uid), seconds)

    # --- What is due ------------------------------------------------------------------------------

    async def _attend(self, key: Key) -> None:
        try:
            await (self._evict(key) if key.sort == "pod" else self._update_status(key))
        except ClusterError as error:
            _log.info("%s %s/%s: %s; trying again", key.sort, key.namespace, key.name, error)
            self._queue.retry(key)
        else:
            self._queue.forget(key)

    async def _evict(self, key: Key) -> None:
        eviction = self._due.get(key)
        if eviction is None:
            return
        left = (eviction.when - self._now()).total_seconds()
        if left > 0:
            self._queue.add_after(key, left)
            return
        try:
            pod = await self._client.get(PODS, key.name, key.namespace)
        except NotFoundError:
            pod = None
        if pod is not None and pod.metadata.uid == key.uid and not is_leaving(pod):
            why = "; ".join(str(reason) for reason in eviction.reasons)
            self._record(pod, f"Marking for deletion: {why}")
            await evict(self._client, pod, self._now())
            for uid in eviction.rule_uids():
                self._evicted_by[uid] += 1
                # Later, since the cache does not know of the eviction yet.
                self._ask_for_status(uid, PERIOD.total_seconds())
        self._due.pop(key, None)
        self._evicted[key.uid] = None

    async def _update_status(self, key: Key) -> None:
        rule = None if self._known_rules is None else self._known_rules.cache.get(key.name)
        if rule is None or rule.metadata.uid != key.uid:
            return
        now = self._now()
        wait = wait_before_update(rule, now)
        if wait:
            self._queue.add_after(key, wait.total_seconds())
            return
        condition = new_condition(rule, self._counts(rule), now)
        if condition is not None:
            await self._client.patch(
                DEVICE_TAINT_RULES,
                key.name,
                condition_patch(rule, condition),
                subresource="status",
                options=WriteOptions(field_manager=NAME, force=True),
            )

    def _counts(self, rule: DeviceTaintRule) -> Counts:
        pods = (pod for pod in self._pods.cache if pod.metadata.uid not in self._evicted)
        return count(
            rule,
            self._tainted,
            pods=pods,
            find=self._find_claim,
            claims=self._claims.cache,
            slices=self._slices.cache,
            evicted=self._evicted_by[rule.metadata.uid],
        )

    def _record(self, pod: Pod, note: str) -> None:
        self._recorder.record(Reference.to(PODS, pod), "Normal", REASON, note, "Evict")


def _key_of(pod: Pod) -> Key:
    return Key("pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _index_of(pool: PoolId) -> str:
    return f"{pool[0]}/{pool[1]}"


def _pools_of(claim: ResourceClaim) -> Iterator[str]:
    yield from {_index_of((r.driver, r.pool)) for r in claim.status.results}
