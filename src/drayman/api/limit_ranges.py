"""LimitRanges: what containers of a namespace ask for where they do not say."""

from __future__ import annotations

from msgspec import field

from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, always


class LimitRangeItem(ApiStruct):
    type_: str = field(name="type", default="")
    max_: dict[str, Quantity] = field(name="max", default_factory=dict)
    min_: dict[str, Quantity] = field(name="min", default_factory=dict)
    default: dict[str, Quantity] = field(default_factory=dict)
    """Limits."""
    default_request: dict[str, Quantity] = field(default_factory=dict)


class LimitRangeSpec(ApiStruct):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("LimitRange")
    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()
