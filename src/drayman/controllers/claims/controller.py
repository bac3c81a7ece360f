"""The loop of the claim controller: what changed, what is to be done about it, and doing it for many at once.

Changes put pods, groups of pods and claims into one queue. A round takes what is due, up to a bound, decides on each from the caches and
writes all of it together. What is refused, because an object has changed meanwhile, is tried again later.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from drayman.api.claim_generation import SUFFIX_ALPHABET, SUFFIX_LENGTH
from drayman.api.core import Pod, PodResourceClaim
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import entry_claims, is_done
from drayman.api.resource import ResourceClaim
from drayman.cluster.breaks import Breaks
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError, is_final
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informers import Informers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS
from drayman.cluster.turns import Turns
from drayman.cluster.workqueue import WorkQueue
from drayman.controllers.claims.knowledge import Knowledge
from drayman.controllers.claims.noticing import Key, Noticing
from drayman.controllers.claims.writing import (
    Task,
    carry_out,
    generation_task,
    release_task,
    reservation_task,
    resource_of,
)
from drayman.workloads.claims.generating import Generation, generate, lacking
from drayman.workloads.claims.releasing import (
    Consumer,
    Use,
    release,
    users_in_doubt,
)
from drayman.workloads.claims.reserving import unreserved

_log: Final = logging.getLogger(__name__)

COMPONENT: Final = "resource_claim"
BATCH: Final = 50
"""What one round takes on: enough to share a commit, few enough that other users of the event loop get a turn."""

Found = Pod | PodGroup | ResourceClaim | None
Find = Callable[[Key], Awaitable[Found]]


@dataclass(frozen=True, slots=True)
class ClaimDecision:
    """What is to be written for one key."""

    key: Key
    task: Task
    generation: Generation | None = None


class ClaimController:
    """Generates, reserves and releases claims. `run` may be called again after it failed."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        turns: Turns | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """With `turns`, pods are left to the scheduler until it gives them up."""
        self._client = client
        self._rng = rng or random.Random()
        self._known = Knowledge(informers)
        self._queue: WorkQueue[Key] = WorkQueue()
        self._breaks = Breaks()
        self._recorder = EventRecorder(client, COMPONENT)
        self._turns = turns
        Noticing(self._known, self._queue).begin()
        if turns is not None:
            turns.listen(self._ask_about)

    async def run(self) -> None:
        """Works until cancelled."""
        await self._known.wait_synced()
        async with self._recorder:
            while True:
                keys = await self._queue.take(BATCH)
                try:
                    await self._attend(keys)
                except Exception:
                    for key in keys:
                        self._queue.retry(key)
                    raise
                finally:
                    for key in keys:
                        self._queue.done(key)

    def _ask_about(self, pod: Pod) -> None:
        self._queue.add(Key("pod", pod.metadata.namespace, pod.metadata.name))

    # --- What is to be done -----------------------------------------------------------------------

    async def _attend(self, keys: Sequence[Key]) -> None:
        """Decides from the caches and writes all of it together. Where the cluster has transactions, what is refused is decided again at
        once from the server's state."""
        refused = await self._write(await self._decisions(keys, self._cached))
        if refused and self._client.transactional:
            _log.info("%d of %d writes were refused: %s", len(refused), len(keys), refused[0][1])
            final = [each for each in refused if _is_final(*each)]
            again = [decision.key for decision, error in refused if not _is_final(decision, error)]
            refused = final + await self._write(await self._decisions(again, self._present))
        for decision, refusal in refused:
            self._complain(decision, refusal)

    async def _write(
        self, decisions: Sequence[ClaimDecision]
    ) -> list[tuple[ClaimDecision, ClusterError]]:
        """The refused decisions with their errors. Claims that they would have created are no longer expected; if this raises, none are."""
        try:
            outcomes = await carry_out(self._client, [decision.task for decision in decisions])
        except BaseException:
            for decision in decisions:
                self._is_not_written(decision)
            raise
        refused: list[tuple[ClaimDecision, ClusterError]] = []
        for decision, refusal in zip(decisions, outcomes, strict=True):
            if refusal is not None:
                self._is_not_written(decision)
                refused.append((decision, refusal))
            elif decision.generation is None or not decision.generation.failure:
                self._queue.forget(decision.key)
        return refused

    async def _decisions(self, keys: Sequence[Key], find: Find) -> list[ClaimDecision]:
        decisions: list[ClaimDecision] = []
        # Claims first: pods may be waiting for what they release.
        for key in sorted(keys):
            await self._breaks.between()
            try:
                decision = await self._decide(key, await find(key))
            except ClusterError as error:
                self._failed(key, error)
                continue
            if decision is not None:
                decisions.append(decision)
            else:
                self._queue.forget(key)
        return decisions

    async def _cached(self, key: Key) -> Found:
        if key.sort == "pod":
            return self._known.pod(key.namespace, key.name)
        if key.sort == "podgroup":
            return self._known.group(key.namespace, key.name)
        return self._known.claim(key.namespace, key.name)

    async def _present(self, key: Key) -> Found:
        """The object of a key as the server has it now."""
        try:
            if key.sort == "pod":
                return await self._client.get(PODS, key.name, key.namespace)
            if key.sort == "podgroup":
                return await self._client.get(POD_GROUPS, key.name, key.namespace)
            return await self._client.get(RESOURCE_CLAIMS, key.name, key.namespace)
        except NotFoundError:
            return None

    async def _decide(self, key: Key, found: Found) -> ClaimDecision | None:
        if isinstance(found, ResourceClaim):
            return await self._release_of(key, found)
        if found is None:
            return None
        entries = await self._entries_to_serve(found)
        if entries and self._turns is not None and self._turns.is_held(found.metadata.uid):
            return None  # the scheduler makes them, or says that it does not
        if entries:
            return self._generation_of(key, found, entries)
        if isinstance(found, PodGroup):
            return None
        reservations = unreserved(found, self._known)
        return ClaimDecision(key, reservation_task(reservations)) if reservations else None

    def _generation_of(
        self, key: Key, user: Pod | PodGroup, entries: Sequence[PodResourceClaim]
    ) -> ClaimDecision:
        generation = generate(user, entries, self._known, self._suffix)
        if generation.failure:
            self._report(user, generation.failure)
            self._queue.retry(key)
        for claim in generation.claims:
            self._known.expect(claim)
        return ClaimDecision(key, generation_task(generation), generation)

    async def _entries_to_serve(self, user: Pod | PodGroup) -> tuple[PodResourceClaim, ...]:
        """The entries that lack a claim, after asking the server about those missing only from the cache."""
        names = {entry.name for entry in lacking(user, self._known)}
        for entry, name in entry_claims(user) if names else ():
            if (
                name
                and entry.name in names
                and self._known.claim(user.metadata.namespace, name) is None
            ):
                await self._look_for(user.metadata.namespace, name)
        return lacking(user, self._known)

    async def _look_for(self, namespace: str, name: str) -> None:
        try:
            claim = await self._client.get(RESOURCE_CLAIMS, name, namespace)
        except NotFoundError:
            return
        if self._known.claim(namespace, name) is None:
            self._known.expect(claim)

    async def _release_of(self, key: Key, claim: ResourceClaim) -> ClaimDecision | None:
        if not claim.metadata.uid:
            return None  # it is just being created
        verdicts = {
            user: await self._ask_server(user) for user in users_in_doubt(claim, self._known.use_of)
        }

        def use_of(user: Consumer) -> Use:
            known = self._known.use_of(user)
            return verdicts.get(user, known) if known is Use.UNKNOWN else known

        found = release(claim, use_of)
        if not found.is_needed:
            return None
        return ClaimDecision(key, release_task(found))

    async def _ask_server(self, user: Consumer) -> Use:
        sort: Literal["pod", "podgroup"] = "pod" if user.resource == "pods" else "podgroup"
        found = await self._present(Key(sort, user.namespace, user.name))
        if found is None or found.metadata.uid != user.uid:
            return Use.OVER
        return Use.OVER if isinstance(found, Pod) and is_done(found) else Use.NEEDED

    # --- What came of it --------------------------------------------------------------------------

    def _complain(self, decision: ClaimDecision, refusal: ClusterError) -> None:
        generation = decision.generation
        if generation is not None and not isinstance(refusal, ConflictError | NotFoundError):
            self._report(generation.user, f"create ResourceClaim: {refusal}")
        if _is_final(decision, refusal):
            self._queue.rest(decision.key)
        else:
            self._failed(decision.key, refusal)

    def _is_not_written(self, decision: ClaimDecision) -> None:
        if decision.generation is not None:
            for claim in decision.generation.claims:
                self._known.settle(claim)

    def _failed(self, key: Key, error: ClusterError) -> None:
        _log.info("%s %s/%s: %s; trying again", *key, error)
        self._queue.retry(key)

    def _report(self, user: Pod | PodGroup, note: str) -> None:
        regarding = Reference.to(resource_of(user), user)
        self._recorder.record(regarding, "Warning", "FailedResourceClaimCreation", note, "Create")

    def _suffix(self) -> str:
        return "".join(self._rng.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))


def _is_final(decision: ClaimDecision, refusal: ClusterError) -> bool:
    """Whether claims cannot be made because of what their template or their user contains.

    Other writes are refused for what has changed meanwhile.
    """
    return decision.generation is not None and is_final(refusal)
