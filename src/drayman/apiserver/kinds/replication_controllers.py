"""ReplicationControllers: the predecessors of ReplicaSets. They select their pods by plain labels."""

from __future__ import annotations

from typing import Final

from drayman.api.validation.field_errors import invalid, required
from drayman.apiserver.kinds.pods.defaults import default_template
from drayman.apiserver.kinds.reading import at, map_at, member
from drayman.apiserver.kinds.rules import Errors, Rules
from drayman.apiserver.kinds.workloads import (
    check_numbers,
    check_running_template,
    named_template_warnings,
)
from drayman.apiserver.served.strategy import Context, Object

_TEMPLATE: Final = "spec.template"


def _default(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    spec.setdefault("replicas", 1)
    if not isinstance(spec.get("template"), dict):
        return
    default_template(spec["template"])
    if labels := map_at(spec, "template", "metadata", "labels"):
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = member(obj, "metadata")
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)


def _check(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    yield from check_numbers(spec, "spec", "minReadySeconds")
    selector = map_at(spec, "selector")
    if not selector:
        yield required("spec.selector")
    yield from check_numbers(spec, "spec", "replicas")
    if spec.get("template") is None:
        yield required(_TEMPLATE)
        return
    own = at(spec, "template", "metadata", "labels")
    if not selector.items() <= (own or {}).items():
        detail = "`selector` does not match template `labels`"
        yield invalid(f"{_TEMPLATE}.metadata.labels", own, detail)
    yield from check_running_template(spec, "ReplicationController")


REPLICATION_CONTROLLER: Final = Rules(
    defaults=_default, checks=_check, warns=named_template_warnings
)
