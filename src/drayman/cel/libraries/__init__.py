"""The extension libraries of Kubernetes' CEL environment, as of version 1.36.

Each module has one library: the signatures of each function, what it does, and its estimated and actual cost.
"""

from __future__ import annotations

from drayman.cel.functions import Library
from drayman.cel.libraries.authz import AUTHZ, AUTHZ_SELECTORS
from drayman.cel.libraries.cidr import CIDRS
from drayman.cel.libraries.formats import NAMED_FORMATS
from drayman.cel.libraries.includes import INCLUDES
from drayman.cel.libraries.ip import IPS
from drayman.cel.libraries.kubernetes_lists import KUBERNETES_LISTS
from drayman.cel.libraries.lists import LISTS_EXTENSION
from drayman.cel.libraries.quantity import QUANTITIES
from drayman.cel.libraries.regex import REGEX
from drayman.cel.libraries.semver import SEMVERS
from drayman.cel.libraries.sets import SETS
from drayman.cel.libraries.strings import STRINGS
from drayman.cel.libraries.url import URLS

__all__ = ["INCLUDES", "kubernetes_libraries"]


def kubernetes_libraries() -> tuple[Library, ...]:
    """In the order in which the environment adds them. `INCLUDES` depends on a feature gate and is not included."""
    return (
        URLS,
        REGEX,
        KUBERNETES_LISTS,
        AUTHZ,
        QUANTITIES,
        STRINGS,
        SETS,
        IPS,
        CIDRS,
        NAMED_FORMATS,
        AUTHZ_SELECTORS,
        SEMVERS,
        LISTS_EXTENSION,
    )
