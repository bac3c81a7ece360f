"""Namespaces: they hold everything else, so they have their own finalizers and are deleted last."""

from __future__ import annotations

from typing import Final

from drayman.api.formats import dns_label_problems
from drayman.api.validation import FieldError
from drayman.api.validation.metadata import check_metadata_update
from drayman.apiserver.kinds.reading import at, items_at, member, set_default, text_at
from drayman.apiserver.kinds.rules import Rules, StatusRules, metadata_of
from drayman.apiserver.served.strategy import Context, Object, Strategy, restore

NAME_LABEL: Final = "kubernetes.io/metadata.name"
FINALIZER: Final = "kubernetes"
ACTIVE: Final = "Active"
TERMINATING: Final = "Terminating"


def _default(obj: Object, _context: Context) -> None:
    metadata = member(obj, "metadata")
    if name := metadata.get("name"):
        member(metadata, "labels")[NAME_LABEL] = name
    set_default(member(obj, "status"), "phase", ACTIVE)


def _prepare(obj: Object, _context: Context) -> None:
    obj["status"] = {"phase": ACTIVE}
    spec = member(obj, "spec")
    if FINALIZER not in items_at(spec, "finalizers"):
        spec["finalizers"] = [*items_at(spec, "finalizers"), FINALIZER]


class NamespaceRules(Rules):
    """Namespaces through the main endpoint: finalizers of the spec have their own endpoint."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        spec = member(new, "spec")
        restore(spec, old.get("spec") or {}, "finalizers")
        restore(new, old, "status")


class FinalizeStrategy(Strategy):
    """Only the finalizers of the spec change."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        finalizers = at(new, "spec", "finalizers")
        restore(new, old, "status")
        new["spec"] = {**(old.get("spec") or {}), "finalizers": finalizers or []}

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        return [*check_metadata_update(metadata_of(new), metadata_of(old))]


class NamespaceStatusRules(StatusRules):
    """The status of namespaces, which always has a phase."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        set_default(member(new, "status"), "phase", text_at(old, "status", "phase"))


NAMESPACE: Final = NamespaceRules(
    namespaced=False,
    name_problems=dns_label_problems,
    defaults=_default,
    prepare=_prepare,
    rechecks=False,
)
FINALIZE: Final = FinalizeStrategy()
STATUS: Final = NamespaceStatusRules()
