"""Why work waits that is in a queue in the sense of the KAI Scheduler: in which queue, how much of what is in use, and by whom."""

from __future__ import annotations

from typing import Final

from drayman.api.quantity import Format, Quantity
from drayman.placement.gangs.gang import GangKey
from drayman.placement.queueing.book import QueueBook
from drayman.placement.queueing.limits import Barrier, Withheld
from drayman.placement.queueing.queues import Amount
from drayman.placement.state import ClusterState
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import and_list, counted

_REASONS: Final = {
    Barrier.LIMIT: Reason.OVER_LIMIT,
    Barrier.QUOTA: Reason.NON_PREEMPTIBLE_OVER_QUOTA,
    Barrier.NO_QUEUE: Reason.QUEUE_DOES_NOT_EXIST,
}


def kept_out(withheld: Withheld, state: ClusterState) -> Headline:
    """Why a queue keeps work out."""
    reason = _REASONS[withheld.barrier]
    if withheld.barrier is Barrier.NO_QUEUE:
        end = "" if withheld.flaw.endswith("?") else "."
        return Headline.of(reason, f"{withheld.flaw[:1].upper()}{withheld.flaw[1:]}{end}")
    name, resource = withheld.queue, withheld.resource
    where = f"Queue {name}" if name == withheld.leaf else f"Queue {name}, above {withheld.leaf},"
    bound, used = _said(resource, withheld.bound), _said(resource, withheld.used)
    wanted = amount_of(resource, withheld.wanted)
    is_firm = withheld.barrier is Barrier.QUOTA
    if is_firm:
        said = f"{where} has a quota of {bound} for work that is not preemptible"
    else:
        said = f"{where} has a limit of {bound}"
    said = f"{said}: {wanted} wanted, {used} in use"
    holders = holders_in(state.queues, name, resource, firm=is_firm)
    return Headline.of(reason, f"{said}, by {and_list(holders)}." if holders else f"{said}.")


def holders_in(book: QueueBook, name: str, resource: str, *, firm: bool = False) -> list[str]:
    """Who holds something of a resource in a queue and those below it, those first that hold most."""
    held: dict[GangKey | str, Amount] = {}
    leaves = book.tree.leaves(name) if name in book.tree else (name,)
    for leaf in leaves:
        for unit in book.units_in(leaf):
            for stake in book.pods_of(unit).values():
                amount = getattr(stake.amounts, resource)
                if stake.is_placed and amount and (stake.is_firm or not firm):
                    held[unit] = held.get(unit, 0) + amount
    titles = {unit: title_of(book, unit) for unit in held}
    ordered = sorted(held, key=lambda unit: (-held[unit], titles[unit]))
    return [f"{titles[unit]} ({_said(resource, held[unit])})" for unit in ordered]


def title_of(book: QueueBook, unit: GangKey | str) -> str:
    """What work in a queue is called: as in `pod group ml/train`, or `pod ml/one`."""
    if isinstance(unit, GangKey):
        return str(unit)
    metadata = next(iter(book.pods_of(unit).values())).pod.metadata
    return f"pod {metadata.namespace}/{metadata.name}"


def amount_of(resource: str, amount: Amount) -> str:
    """As in `4 GPUs`."""
    if resource == "gpu" and amount == int(amount):
        return counted(int(amount), "GPU")
    return f"{_said(resource, amount)} {'GPUs' if resource == 'gpu' else resource}"


def _said(resource: str, amount: Amount) -> str:
    if resource == "gpu":
        return f"{float(amount):g}"
    if resource == "cpu":
        return f"{float(amount) / 1000:g}"
    return str(Quantity(int(amount), Format.DECIMAL_SI))
