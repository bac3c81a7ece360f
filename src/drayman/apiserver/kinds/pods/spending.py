"""What a pod says about the price of its node, in annotations or labels with a defined meaning."""

from __future__ import annotations

from typing import Final

from drayman.api.validation.field_errors import not_supported
from drayman.apiserver.kinds.reading import map_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object
from drayman.placement.prices import SAID_BY_PODS

_NOTHING: Final[Object] = {}


def check_spending(metadata: Object, path: str, before: Object = _NOTHING) -> Errors:
    """What cannot be understood and is new."""
    for place in ("annotations", "labels"):
        values = map_at(metadata, place)
        for name, known in SAID_BY_PODS.items() if values else ():
            value = values.get(name)
            if (
                value is not None
                and value not in known
                and value != map_at(before, place).get(name)
            ):
                yield not_supported(f"{path}.{place}[{name}]", value, known)
