"""The mix of pods that a cluster serves, and how much of what it has for them a placement takes away.

Among nodes that are equally good for a pod itself, the best is the one on which the pods that come after it lose least (`outlook`). What
will come is taken to be like what is there: pods that hold devices, by what they ask for. Pods without devices are not part of the mix, but
the CPU that they take may be what the devices of a node need, so their nodes are chosen by the same measure.

The mix follows from the claims that hold devices now, so that two readers of one cluster have the same mix, and nothing is left of pods
that are gone. Its counts are rounded: most changes leave it as it is, and what is known about nodes stays known. In a large cluster it is
a sample, which is taken again when half of the claims have come or gone, so that it costs little for each of them. It does not change in
a trial.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from drayman.allocator import Question
from drayman.allocator.signature import appearance
from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.undo import UndoLog
from drayman.inventory.view import NodeView
from drayman.placement.fit import PodNeeds
from drayman.placement.nodes import NodeState
from drayman.placement.outlook import (
    DEVICE,
    DeviceWish,
    FindClass,
    Loss,
    Outlook,
    PodKind,
    Taken,
)

_MOST_CLAIMS: Final = 4_096
_LEAST_PODS: Final = 8
"""So few pods say nothing of those that will come."""
_SMALL: Final = 64
"""Up to so many claims, all of them count as soon as they have devices."""
_MOST_HARDWARE: Final = 16_384
_ALL: Final = "All"


class Mix:
    """Kinds of pods, with how often each was seen."""

    def __init__(self, kinds: Iterable[tuple[PodKind, int]] = ()) -> None:
        self.kinds: Sequence[tuple[PodKind, int]] = tuple(kinds)
        self._outlooks: Bounded[NodeHardware, Outlook] = Bounded(_MOST_HARDWARE)
        self._by_appearance: dict[int, Outlook] = {}
        self._epoch = -1

    def loss(
        self, view: NodeView, node: NodeState, needs: PodNeeds, taken: Taken, epoch: int
    ) -> Loss:
        """What the pods of the mix lose on a node if a pod with these needs takes these of its devices."""
        if not self.kinds:
            return Loss(0, _free(view))
        if epoch != self._epoch:
            self._epoch = epoch
            self._outlooks.clear()
            self._by_appearance.clear()
        part = view.parts[0]  # the node's own devices, unless it has none
        outlook = self._outlooks.get(part.hardware)
        if outlook is None:
            outlook = self._outlooks[part.hardware] = self._outlook(
                part.hardware, view.device_class
            )
        shape, usage, pod = node.facts.shape, node.usage, needs.shape
        room = (shape.cpu - usage.cpu, shape.memory - usage.memory)
        usable = part.hardware.everything
        if part.hardware.features.device_taints:
            usable = view.taints[0].tolerated(())
        return outlook.loss(room, (pod.cpu, pod.memory), part, usable, taken)

    def mean(self, loss: Loss) -> int:
        """What a pod of the mix loses on average, in thousandths of a device."""
        pods = sum(count for _, count in self.kinds)
        return loss.worth * 1000 // (DEVICE * pods) if pods else 0

    def _outlook(self, hardware: NodeHardware, find_class: FindClass) -> Outlook:
        """Nodes that look the same to the pods of the mix share what is known."""
        if hardware.is_vast or not hardware.records:
            return Outlook(hardware, (), find_class)
        wishes = dict.fromkeys(wish for kind, _ in self.kinds for wish in kind.wishes)
        asked = tuple(dict.fromkeys(wish.expressions(find_class) for wish in wishes))
        number = appearance(hardware, asked)
        outlook = self._by_appearance.get(number)
        if outlook is None:
            outlook = Outlook(hardware, self.kinds, find_class)
            self._by_appearance[number] = outlook
        return outlook


def _free(view: NodeView) -> int:
    """How many devices of a node are free: all that counts as long as nobody knows what will come."""
    part = view.parts[0]
    gone = part.in_use | part.shared | part.counter_blocked
    return DEVICE * (part.hardware.everything & ~gone).bit_count()


NO_MIX: Final = Mix()


class MixBook:
    """The mix of one cluster."""

    def __init__(
        self,
        holders: Collection[str],
        find: Callable[[str], ResourceClaim | None],
        needs_of: Callable[[str], PodNeeds | None],
        log: UndoLog,
    ) -> None:
        """`holders` are those of all devices, `find` knows the claims among them, and `needs_of` the pods on nodes, by uid."""
        self._holders = holders
        self._find = find
        self._needs_of = needs_of
        self._log = log
        self._news = 0
        self._is_current = True
        self._wishes: Bounded[str, tuple[DeviceWish, ...] | None] = Bounded(_MOST_CLAIMS)
        self._mix = NO_MIX

    def claim_changed(self) -> None:
        """A claim has got devices, or has none any more."""
        if not self._log.depth:
            self._news += 1
            self._is_current = False

    def pod_changed(self) -> None:
        """A pod has got its node, or is gone from there."""
        if not self._log.depth:
            self._is_current = False

    @property
    def mix(self) -> Mix:
        if not self._is_current and not self._log.depth:
            number = len(self._holders)
            if number <= _SMALL:
                self._is_current = True
                self._take()
            elif self._news >= number // 2:
                self._take()
        return self._mix

    def _take(self) -> None:
        self._news = 0
        counts = Counter(self._sampled())
        kinds = {kind: _rounded(count) for kind, count in counts.items()}
        if counts.total() < _LEAST_PODS:
            kinds = {}
        if kinds != dict(self._mix.kinds):
            self._mix = Mix(kinds.items()) if kinds else NO_MIX

    def _sampled(self) -> Iterator[PodKind]:
        stride = -(-len(self._holders) // _MOST_CLAIMS) or 1
        wishes: dict[str, tuple[DeviceWish, ...]] = {}
        for holder in islice(self._holders, 0, None, stride):
            claim = self._find(holder)
            if claim is None or claim.status.allocation is None:
                continue
            users = claim.status.reserved_for
            wanted = self._wanted(claim) if len(users) == 1 else None
            if wanted:
                wishes[users[0].uid] = wishes.get(users[0].uid, ()) + wanted
        for uid, wanted in wishes.items():
            needs = self._needs_of(uid)
            if needs is not None:
                yield PodKind(needs.shape.cpu, needs.shape.memory, wanted)

    def _wanted(self, claim: ResourceClaim) -> tuple[DeviceWish, ...] | None:
        uid = claim.metadata.uid
        if uid not in self._wishes:
            self._wishes[uid] = _wishes_of(claim)
        return self._wishes[uid]


def _rounded(count: int) -> int:
    """The two highest bits of a number."""
    low = max(count.bit_length() - 2, 0)
    return count >> low << low


def _wishes_of(claim: ResourceClaim) -> tuple[DeviceWish, ...] | None:
    """What a claim asks for first; None if that is not a number of devices."""
    found: list[DeviceWish] = []
    for request in Question((claim,)).requests:
        wanted = request.alternatives[0]
        spec = wanted.spec
        if spec.allocation_mode == _ALL:
            return None
        if getattr(spec, "admin_access", None):
            continue
        expressions = [each.cel.expression for each in spec.selectors if each.cel is not None]
        number = max(1, spec.count)
        found.append(DeviceWish(spec.device_class_name, tuple(expressions), number, wanted.amounts))
    return tuple(found)
