"""What another configuration of queues would change for the workloads that are there: their prices, before it is put to use.

Whoever holds quota keeps what it holds. A changed price of an admitted workload counts from when it is queued again.
"""

from __future__ import annotations

from typing import Final

from drayman.api.struct import ApiStruct, Json
from drayman.controllers.quota.configuration import ConfigurationFileError, configuration_of
from drayman.explain.queues.engine import queues_of
from drayman.placement.world import World
from drayman.questions.errors import QuestionError
from drayman.quota.amounts import Amounts, plus, quantity_of
from drayman.quota.demands import Unpriced
from drayman.quota.entries import Entry

ADMITTED: Final = "admitted"
PENDING: Final = "pending"
_NO_FIELD_OF_USE: Final = frozenset({"apiVersion", "kind"})


class Price(ApiStruct):
    """What a workload is charged, for all its pods."""

    resources: dict[str, str] = {}
    no_price: str = ""
    """Why it has none."""


class PriceChange(ApiStruct, kw_only=True):
    """A workload that would cost something else."""

    name: str
    namespace: str
    local_queue: str
    state: str
    """admitted, if it holds quota, or pending."""
    now: Price
    then: Price


class ChangesAnswer(ApiStruct, kw_only=True):
    """What a configuration would change."""

    workloads: int
    """That were priced: all that have not finished."""
    pending: int
    """Of those that wait, how many would cost something else."""
    admitted: int
    """The same, of those that hold quota."""
    changes: tuple[PriceChange, ...] = ()
    fields: tuple[str, ...] = ()
    """Parts of the configuration that say something else."""
    problems: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.changes and not self.fields


def changes(world: World, name: str, configuration: dict[str, Json]) -> ChangesAnswer:
    """What would be otherwise. `name` is what errors call the configuration. Raises QuestionError where it would be refused."""
    try:
        configuration_of(configuration, name)
    except ConfigurationFileError as error:
        raise QuestionError(str(error)) from error
    before = queues_of(world)
    after = queues_of(world.with_queue_configuration(configuration))
    found = []
    for key, entry in sorted(before.state.entries.items()):
        now, then = _price(entry), _price(after.state.entries[key])
        if now != then:
            namespace, _, workload = key.partition("/")
            found.append(
                PriceChange(
                    name=workload,
                    namespace=namespace,
                    local_queue=entry.facts.queue.partition("/")[2],
                    state=PENDING if entry.holding is None else ADMITTED,
                    now=now,
                    then=then,
                )
            )
    pending = sum(each.state == PENDING for each in found)
    return ChangesAnswer(
        workloads=len(before.state.entries),
        pending=pending,
        admitted=len(found) - pending,
        changes=tuple(found),
        fields=_fields(world.queue_configuration, configuration),
        problems=tuple(map(str, before.problems)),
        unseen=world.unseen,
    )


def _price(entry: Entry) -> Price:
    demands = entry.facts.demands
    if isinstance(demands, Unpriced):
        return Price(no_price=demands.message)
    total: Amounts = {}
    for demand in demands:
        total = plus(total, demand.alone)
    return Price(resources={name: str(quantity_of(name, total[name])) for name in sorted(total)})


def _fields(now: Json, then: Json) -> tuple[str, ...]:
    """The parts that differ, and those of `resources` one by one."""
    found = []
    for name in sorted({*(now or {}), *then} - _NO_FIELD_OF_USE):
        one, other = (now or {}).get(name), then.get(name)
        if one == other:
            continue
        if name == "resources":
            parts = sorted({*(one or {}), *(other or {})})
            found += [
                f"resources.{part}"
                for part in parts
                if (one or {}).get(part) != (other or {}).get(part)
            ]
        else:
            found.append(name)
    return tuple(found)
