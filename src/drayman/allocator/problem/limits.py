"""The bounds of a search. Named here, with the reason beside them, so that they can be argued about in one place."""

from __future__ import annotations

from typing import Final

MAX_ENTRIES: Final = 32
"""Devices in one claim: the API's limit on `status.allocation.devices.results`."""

PLAIN_STEPS: Final = 30
"""Steps that first fit may take before anything is prepared to prune it. Nine problems in ten end here."""

PLAIN_STEPS_PER_SLOT: Final = 2
PLAIN_SLOTS: Final = 64
"""A wide problem needs two steps a device even when nothing goes wrong; beyond this many, pruning is worth its price."""

STEPS_BEFORE_ALONE: Final = 200
"""Steps of the pruned search, beyond two for each device, before each claim is tried alone. Nearly all problems need fewer."""

ALONE_STEPS: Final = 300
"""Steps for one claim alone: enough to refute what a few requests with contradicting constraints can hide."""

GIVEN_ORDER_STEPS: Final = 3_000
"""Steps of the pruned search in the given order. No recorded problem needs a fifth of them; beyond, the biggest requests go first."""

DEFAULT_MAX_STEPS: Final = 6_000
"""Steps of a whole search. The hardest recorded problem needs some hundred; a perfect packing of 512 devices, which is
NP-hard, reaches this in about a second."""

STEPS_AT_ONCE: Final = 1_000
"""Steps of a search where others wait. What takes more is searched for elsewhere."""

WIDTH_AT_ONCE: Final = 64
"""Devices that a pod asks for, beyond which it is searched for elsewhere: it takes long to begin with, or to say why there are none."""

IMPROVEMENT_STEPS: Final = 1_000
"""Steps that policy `best` may spend on finding something better than the first allocation. Ordinary nodes need some tens."""

IMPROVEMENT_SLOTS: Final = 64
"""Devices in one search beyond which `best` keeps first fit's choice of them: no pod asks for more, and one dive would cost too much."""
