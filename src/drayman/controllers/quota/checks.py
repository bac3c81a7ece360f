"""Follows the admission checks of a cluster."""

from __future__ import annotations

from collections.abc import Callable

from drayman.api.kueue import AdmissionCheck
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.resources import typed
from drayman.quota.checks import Checks, is_active


def followed_checks(informers: Informers, changed: Callable[[], None]) -> Checks:
    """The checks as they are at any time. `changed` is called when one comes, goes, or becomes active or inactive."""
    informer = informers.informer(typed(AdmissionCheck))

    def notice(each: Notice[AdmissionCheck]) -> None:
        is_as_before = (
            each.type != "DELETED"
            and each.old is not None
            and is_active(each.old) == is_active(each.object)
        )
        if not is_as_before:
            changed()

    informer.add_handler(notice)
    return Checks(informer.cache.get)
