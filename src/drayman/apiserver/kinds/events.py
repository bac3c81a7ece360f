"""Events, in the two groups that show them.

Both groups have the same objects under different names. They are stored in the core form; the newer group requires more when
an event is written through it.
"""

from __future__ import annotations

from typing import Final

from drayman.api.schema import normalise
from drayman.api.validation.field_errors import invalid, required
from drayman.api.validation.metadata import IMMUTABLE
from drayman.api.validation.names import label_key
from drayman.apiserver.kinds.checks import unchanged
from drayman.apiserver.kinds.reading import map_at, number_at, text_at, text_reader
from drayman.apiserver.kinds.rules import Errors, Rules
from drayman.apiserver.served.resources import Conversion, GroupVersionKind
from drayman.apiserver.served.shaping import message_of
from drayman.apiserver.served.strategy import Context, Object

_KIND: Final = GroupVersionKind("events.k8s.io", "v1", "Event")
_RENAMED: Final = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)
"""Members of the core form and their names in the newer group."""
_LONGEST: Final = (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024))
_NEEDED: Final = ("reportingInstance", "action", "reason")
_SETTLED: Final = tuple(
    "involvedObject reason message source firstTimestamp lastTimestamp count type eventTime action related reportingInstance".split()
)
_DEPRECATED: Final = ("firstTimestamp", "lastTimestamp", "count")
_TYPES: Final = ("Normal", "Warning")
_FEWEST: Final = 2
_MISMATCH: Final = "does not match event.namespace"


class EventConversion(Conversion):
    """Between `events.k8s.io/v1` and the core form."""

    def to_hub(self, obj: Object, version: str) -> Object:
        for core, other in _RENAMED:
            if other in obj:
                obj[core] = obj.pop(other)
        return obj

    def from_hub(self, obj: Object, version: str) -> Object:
        names = dict(_RENAMED)
        renamed = {names.get(name, name): value for name, value in obj.items()}
        return normalise(message_of(_KIND), renamed)


def _check_event(obj: Object, _context: Context) -> Errors:
    about, own = text_at(obj, "involvedObject", "namespace"), text_at(obj, "metadata", "namespace")
    if not obj.get("eventTime"):
        if own != (about or "default") and (about or own):
            yield invalid("involvedObject.namespace", about, _MISMATCH)
        return
    if not about and own not in ("default", "kube-system"):
        yield invalid("involvedObject.namespace", about, _MISMATCH)
    reporter = text_at(obj, "reportingComponent")
    if not reporter:
        yield required("reportingComponent")
    yield from label_key(reporter, "reportingComponent")
    for name in _NEEDED:
        if not text_at(obj, name):
            yield required(name)
    for name, limit in _LONGEST:
        if len(text_at(obj, name)) > limit:
            yield invalid(name, "", f"can have at most {limit} characters")


def _check_strictly(obj: Object, context: Context) -> Errors:
    """What the newer group requires of a new event."""
    yield from _check_event(obj, context)
    if not obj.get("eventTime"):
        yield required("eventTime")
    if text_at(obj, "type") not in _TYPES:
        yield invalid("type", "", f"has invalid value: {text_at(obj, 'type')}")
    for name in _DEPRECATED:
        if obj.get(name):
            yield invalid(name, "", "needs to be unset")
    if any(map_at(obj, "source").values()):
        yield invalid("source", "", "needs to be unset")
    yield from _series(obj)


def _series(obj: Object) -> Errors:
    if not isinstance(series := obj.get("series"), dict):
        return
    if number_at(series, "count") < _FEWEST:
        yield invalid("series.count", "", f"should be at least {_FEWEST}")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")


def _check_update_strictly(new: Object, old: Object, context: Context) -> Errors:
    yield from _check_event(new, context)
    if new.get("series") != old.get("series"):
        yield from _series(new)
    for name in _SETTLED:
        yield from unchanged(new, old, name)
    if text_at(new, "reportingComponent") != text_at(old, "reportingComponent"):
        yield invalid("reportingController", new.get("reportingComponent"), IMMUTABLE)


CORE_EVENT: Final = Rules(checks=_check_event)
EVENT: Final = Rules(checks=_check_strictly, update_checks=_check_update_strictly, rechecks=False)


_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
SELECTABLE: Final = {
    **{f"involvedObject.{name}": text_reader("involvedObject", name) for name in _ABOUT},
    "reason": text_reader("reason"),
    "reportingComponent": text_reader("reportingComponent"),
    "source": lambda obj: text_at(obj, "source", "component") or text_at(obj, "reportingComponent"),
    "type": text_reader("type"),
}
"""Field selectors of the core form."""
SELECTABLE_IN_EVENTS: Final = {
    **{f"regarding.{name}": text_reader("involvedObject", name) for name in _ABOUT},
    "reason": text_reader("reason"),
    "reportingController": text_reader("reportingComponent"),
    "type": text_reader("type"),
}
