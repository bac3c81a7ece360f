"""Namespaces in admission: nothing is created in a namespace that does not exist or is being deleted."""

from __future__ import annotations

from typing import Final

from drayman.apiserver.protocol.errors import StatusCause, Subject, forbidden, not_found
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted

NAMESPACES: Final = "namespaces"
IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle(AdmissionPlugin):
    """Keeps namespaces and their contents together."""

    def admit(self, write: Admitted) -> None:
        if write.resource.storage_name == NAMESPACES:
            if write.operation == "DELETE" and write.name in IMMORTAL:
                raise forbidden(
                    write.resource.subject(write.name), "this namespace may not be deleted"
                )
            return
        if write.operation == "CREATE" and write.namespace and not write.subresource:
            self._check_namespace(write)

    @staticmethod
    def _check_namespace(write: Admitted) -> None:
        name = write.namespace
        namespace = write.context.objects.get(NAMESPACES, "", name)
        if namespace is None:
            raise not_found(Subject(NAMESPACES, "", name))
        if (namespace.get("status") or {}).get("phase") != "Terminating":
            return
        cause = StatusCause(
            "NamespaceTerminating", f"namespace {name} is being terminated", "metadata.namespace"
        )
        why = f"unable to create new content in namespace {name} because it is being terminated"
        raise forbidden(write.resource.subject(write.name), why, [cause])
