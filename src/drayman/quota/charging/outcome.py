"""What pricing answers: amounts with the reasons for them, or why there is no price, and on what either depends."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from drayman.quota.amounts import saturated
from drayman.quota.claims.prices import ClaimPrice, ObjectKey
from drayman.quota.demands import Charged, Unpriced

ANY_DRIVER: Final = "*"
"""In what a price depends on: devices of any driver, since selectors may match those of one that is not there yet."""


class Code(StrEnum):
    """Why there is no price. Kueue has one reason for all of them, which is what the workload's condition says: Misconfigured."""

    DEVICE_SHORTAGE = "DeviceShortage"
    """Fewer devices match than are wanted, or none of them can be measured."""
    TEMPLATE_MISSING = "TemplateMissing"
    CLAIM_MISSING = "ClaimMissing"
    CLASS_MISSING = "ClassMissing"
    CLASS_UNMAPPED = "ClassUnmapped"
    """No mapping says what devices of the class are charged under."""
    SELECTOR_INVALID = "SelectorInvalid"
    """A selector does not compile, or fails on a device."""
    POLICY_REJECTS = "PolicyRejects"
    """Devices match, but none gives as much capacity as is asked for."""
    UNSATISFIABLE = "Unsatisfiable"
    """No node could ever satisfy the claims together, whoever uses it."""
    UNFINISHED = "Unfinished"
    """The selectors take too long to decide about all devices. What was worked out is kept for the next attempt."""
    QUANTITY_INVALID = "QuantityInvalid"
    """A part of a device is asked for, or more than can be counted."""
    UNSUPPORTED = "Unsupported"
    """The request has a form that is not charged."""


class Dependencies(Struct, frozen=True):
    """The objects that a price was made from, or that it lacked: if none of them changes, it stays the same."""

    classes: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    """Extended resources, which any class may come to stand behind."""
    templates: frozenset[ObjectKey] = frozenset()
    claims: frozenset[ObjectKey] = frozenset()
    drivers: frozenset[str] = frozenset()
    """Whose devices were looked at; may contain `ANY_DRIVER`."""

    def __or__(self, other: Dependencies) -> Dependencies:
        return Dependencies(
            self.classes | other.classes,
            self.names | other.names,
            self.templates | other.templates,
            self.claims | other.claims,
            self.drivers | other.drivers,
        )


NOTHING: Final = Dependencies()


class Item(Struct, frozen=True):
    """One entry of a bill: what a request costs under one name."""

    source: str
    """What asks for the devices: `template t`, `claim c` or `resource example.com/gpu`."""
    request: str
    """The name of the request."""
    device_class: str
    resource: str
    """The name that it is charged under; empty if it is charged nothing."""
    devices: int
    """How many devices: of the node with most of them, if all are asked for."""
    amount: int
    why: str
    """How the amount comes about, for people."""
    is_shared: bool = False
    """Whether it is charged once, and not for each pod."""


class Charges(Charged, frozen=True):
    """What one pod of a set costs, and what the whole set costs once."""

    items: tuple[Item, ...] = ()
    measured: frozenset[str] = frozenset()
    """Resources that are measured rather than counted: people read them in binary units."""
    depends_on: Dependencies = NOTHING

    @classmethod
    def of_items(
        cls,
        items: Iterable[Item],
        *,
        claims: tuple[ClaimPrice, ...],
        replaced: frozenset[str],
        admin_devices: int,
        measured: frozenset[str],
        depends_on: Dependencies,
        varies: bool = False,
    ) -> Charges:
        """The sums of a bill, which never exceed what an int64 holds."""
        listed = tuple(items)
        per_pod: dict[str, int] = {}
        for item in listed:
            if item.resource and not item.is_shared:
                per_pod[item.resource] = saturated(per_pod.get(item.resource, 0) + item.amount)
        return cls(
            charges=per_pod,
            replaced=replaced,
            claims=claims,
            items=listed,
            admin_devices=admin_devices,
            measured=measured,
            depends_on=depends_on,
            varies=varies,
        )


class PriceRefusal(Unpriced, frozen=True):
    """Why there is no price."""

    code: Code = Code.UNSUPPORTED
    path: str = ""
    """The field at fault, beginning with the object if it is not the workload itself."""
    depends_on: Dependencies = NOTHING

    @classmethod
    def at(cls, code: Code, path: str, text: str, *, retryable: bool) -> PriceRefusal:
        """The message begins with the field."""
        return cls(message=f"{path}: {text}", retryable=retryable, code=code, path=path)


class RefusedError(Exception):
    """Ends the pricing of a workload. Never leaves this package."""

    def __init__(self, refusal: PriceRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def refuse(code: Code, path: str, text: str, *, retryable: bool = False) -> RefusedError:
    """For `raise`: there is no price."""
    return RefusedError(PriceRefusal.at(code, path, text, retryable=retryable))
