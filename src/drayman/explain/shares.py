"""What a queue in the sense of the KAI Scheduler has to do with work that waits in it."""

from __future__ import annotations

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.placement.queueing.amounts import NOTHING
from drayman.placement.state import ClusterState
from drayman.placement.world import World
from drayman.quota.shares.live import LiveShares, Unit
from drayman.quota.shares.reach import Means, Reaching
from drayman.reasons.queues import kept_out, title_of
from drayman.reasons.reason import Headline
from drayman.reasons.wording import and_list


def with_share(world: World, first: Headline, pod: Pod) -> Headline:
    """What is said about a pod that finds no room, and whether its queue is entitled to have others make way."""
    book = world.state.queues
    stake = book.stake(pod.metadata.uid)
    if stake is None or not book.is_in_force or book.withheld((stake.uid,)) is not None:
        return first
    said = part_of_queue(world.state, stake.unit, world.now)
    return replace(first, sentence=f"{first.sentence} {said}") if said else first


def part_of_queue(state: ClusterState, unit: Unit, now: float) -> str:
    """What the queue of a unit that waits has to do with it: that it keeps it out, or who makes way for it; empty if nothing."""
    book = state.queues
    stakes = book.pods_of(unit)
    waiting = [uid for uid, stake in stakes.items() if not stake.is_placed]
    if not book.is_in_force or not waiting:
        return ""
    withheld = book.withheld(waiting)
    if withheld is not None:
        return str(kept_out(withheld, state))
    shares = LiveShares(state)
    reaches, _ = Reaching(state, shares).of(unit, now)
    leaf = next(iter(stakes.values())).queue
    for reach in reaches:
        names = [title_of(book, each) for each in reach.first]
        if reach.means is Means.RECLAIM:
            return (
                f"Queue {leaf} is entitled to more: these may have to make way: {and_list(names)}."
            )
        return f"These are less important, in the same queue, and may have to make way: {and_list(names)}."
    used, share = book.sums.used.get(leaf, NOTHING).gpu, shares.of_queues().get(leaf, 0)
    return f"Queue {leaf} uses {float(used):g} of its fair share of {float(share):g} GPUs: nobody has to make way."
