"""The rights to name an owner: the optional admission plug-in OwnerReferencesPermissionEnforcement, with its texts.

Without it, a user who may write an object can have it collected with any owner, or hold up the deletion of any owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from drayman.apiserver.kinds.reading import items_at
from drayman.apiserver.protocol.access import AccessDecision, Attributes, Authorizer
from drayman.apiserver.protocol.errors import StatusError, forbidden
from drayman.apiserver.served.resources import ApiResource, Resources
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted


@dataclass(frozen=True, slots=True)
class OwnerPermissions(AdmissionPlugin):
    """Requires the right to delete an object of users who change its owners, and the right to the finalizers of owners whose
    deletion it then holds up."""

    authorizer: Authorizer
    resources: Resources

    def validate(self, write: Admitted) -> None:
        if write.new is None or (write.resource.plural, write.subresource) == ("pods", "status"):
            return
        new, old = _owners(write.new), _owners(write.old or {})
        if new == old:
            return
        decision = self._decision(write, "delete", write.resource, write.subresource, write.name)
        if not decision.allowed:
            raise _refusal(write, "cannot set an ownerRef on a resource you can't delete", decision)
        for owner in _newly_blocked(new, old):
            self._check_blocked(write, owner)

    def _check_blocked(self, write: Admitted, owner: Object) -> None:
        version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        group, _, short = version.rpartition("/")
        resource = self.resources.find_kind(group, short, kind)
        if resource is None:
            why = (
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
                f'{version} Kind {kind}: no matches for kind "{kind}" in version "{version}"'
            )
            raise forbidden(write.resource.subject(write.name), why)
        decision = self._decision(write, "update", resource, "finalizers", owner.get("name", ""))
        if not decision.allowed:
            why = (
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource "
                "you can't set finalizers on"
            )
            raise _refusal(write, why, decision)

    def _decision(
        self, write: Admitted, verb: str, resource: ApiResource, part: str, name: str
    ) -> AccessDecision:
        namespace = write.namespace if resource.namespaced else ""
        wanted = Attributes(
            verb, resource.group, resource.versions[0], resource.plural, part, namespace, name
        )
        return self.authorizer.authorize(write.context.user, wanted)


def _owners(obj: Object) -> list[Object]:
    return list(items_at(obj, "metadata", "ownerReferences"))


def _newly_blocked(new: Iterable[Object], old: Iterable[Object]) -> list[Object]:
    """The owners whose deletion an object starts to hold up."""
    before = {owner.get("uid") for owner in old if owner.get("blockOwnerDeletion")}
    return [o for o in new if o.get("blockOwnerDeletion") and o.get("uid") not in before]


def _refusal(write: Admitted, why: str, decision: AccessDecision) -> StatusError:
    return forbidden(write.resource.subject(write.name), f"{why}: {decision.reason}, <nil>")
