"""What belongs to the admission of a workload is written by those who may admit it.

Three annotations of a Workload say as much as its status does. `drayman.dev/room` keeps nodes and devices from everybody else
(`quota/fitting`), `drayman.dev/claims` says what the workload pays for claims that others use too (`quota/claims`), and Kueue's
`workload-slice-replacement-for` has it take over the quota of another one. So they take the same right: to update `workloads/status`. The
right to change Workloads, which people have who may change their priority or stop them, is not enough.

The same right is needed to let pods go that wait in a queue: to remove a gate of the queue, or the label by which the queue knows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.custom_groups import KUEUE
from drayman.apiserver.kinds.reading import items_at, map_at, text_at
from drayman.apiserver.protocol.access import Attributes, Authorizer
from drayman.apiserver.protocol.errors import forbidden
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.quota.claims.records import CLAIMS
from drayman.quota.fitting.rooms import ROOM
from drayman.workloads.queued.names import GATES, MANAGED, REPLACES

_RECORDS: Final = (ROOM, CLAIMS, REPLACES)
_STATUS: Final = "status"
_VERSION: Final = "v1beta2"


@dataclass(frozen=True, slots=True)
class AdmissionRecords(AdmissionPlugin):
    """Refuses to have the annotations set, changed or removed by others."""

    authorizer: Authorizer

    def validate(self, write: Admitted) -> None:
        resource = write.resource
        if write.new is None:
            return
        if (resource.group, resource.plural) == (KUEUE, "workloads"):
            field = _changed_record(write.new, write.old or {})
        elif (resource.group, resource.plural) == ("", "pods") and write.old is not None:
            field = _let_go(write.new, write.old)
        else:
            return
        if not field:
            return
        user = write.context.user
        # Of a pod, the name of its Workload is not known here.
        is_workload = resource.group == KUEUE
        name, version = (write.name, write.context.version) if is_workload else ("", _VERSION)
        wanted = Attributes("update", KUEUE, version, "workloads", _STATUS, write.namespace, name)
        if not self.authorizer.authorize(user, wanted).allowed:
            why = (
                f"{field}: may be changed only by the controller that admits the workload; user"
                f' "{user.name}" may not update workloads/{_STATUS}'
            )
            raise forbidden(resource.subject(write.name), why)


def _changed_record(new: Object, old: Object) -> str:
    """The first annotation that says something else; empty if all say the same."""
    before, after = map_at(old, "metadata", "annotations"), map_at(new, "metadata", "annotations")
    changed = [each for each in _RECORDS if after.get(each) != before.get(each)]
    return f"metadata.annotations[{changed[0]}]" if changed else ""


def _let_go(new: Object, old: Object) -> str:
    """What a change removes of that by which queues hold a pod; empty if nothing."""
    kept = {text_at(gate, "name") for gate in items_at(new, "spec", "schedulingGates")}
    for gate in items_at(old, "spec", "schedulingGates"):
        name = text_at(gate, "name")
        if name in GATES and name not in kept:
            return f"spec.schedulingGates[{name}]"
    before, after = map_at(old, "metadata", "labels"), map_at(new, "metadata", "labels")
    if before.get(MANAGED) == "true" and after.get(MANAGED) != "true":
        return f"metadata.labels[{MANAGED}]"
    return ""
