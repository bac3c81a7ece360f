"""Who may write what belongs to the admission of a workload: whoever may admit it.

Three annotations of a Workload say as much as its status does. `drayman.dev/room` keeps nodes and devices from everybody else
(`quota/fitting`), `drayman.dev/claims` says what the workload pays for claims that others use too (`quota/claims`), and Kueue's
`workload-slice-replacement-for` has it take over the quota of another one. So they take the same right: to update `workloads/status`. The
right to change Workloads, which people have who may change their priority or stop them, is not enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.custom_groups import KUEUE
from drayman.apiserver.kinds.reading import map_at
from drayman.apiserver.protocol.access import Attributes, Authorizer
from drayman.apiserver.protocol.errors import forbidden
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.quota.claims.records import CLAIMS
from drayman.quota.fitting.rooms import ROOM
from drayman.workloads.queued.names import REPLACES

_RECORDS: Final = (ROOM, CLAIMS, REPLACES)
_STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class AdmissionRecords(AdmissionPlugin):
    """Refuses to have the annotations set, changed or removed by others."""

    authorizer: Authorizer

    def validate(self, write: Admitted) -> None:
        resource = write.resource
        if write.new is None or (resource.group, resource.plural) != (KUEUE, "workloads"):
            return
        new = map_at(write.new, "metadata", "annotations")
        old = map_at(write.old or {}, "metadata", "annotations")
        changed = [each for each in _RECORDS if new.get(each) != old.get(each)]
        if not changed:
            return
        user = write.context.user
        wanted = Attributes(
            "update",
            KUEUE,
            write.context.version,
            resource.plural,
            _STATUS,
            write.namespace,
            write.name,
        )
        if not self.authorizer.authorize(user, wanted).allowed:
            why = (
                f"metadata.annotations[{changed[0]}]: is written by whoever admits the workload; user"
                f' "{user.name}" may not update workloads/{_STATUS}'
            )
            raise forbidden(resource.subject(write.name), why)
