"""Who may say which room is kept for a workload: whoever may admit it.

The annotation `drayman.dev/room` of a Workload keeps nodes and devices from everybody else (`quota/fitting`). It belongs to the
admission, so it takes the same right: to update `workloads/status`. The right to change Workloads, which people have who may change their
priority or stop them, is not enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.custom_groups import KUEUE
from drayman.apiserver.kinds.reading import map_at
from drayman.apiserver.protocol.access import Attributes, Authorizer
from drayman.apiserver.protocol.errors import forbidden
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.quota.fitting.rooms import ROOM

_STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class RoomRecords(AdmissionPlugin):
    """Refuses to have the annotation set, changed or removed by others."""

    authorizer: Authorizer

    def validate(self, write: Admitted) -> None:
        resource = write.resource
        if write.new is None or (resource.group, resource.plural) != (KUEUE, "workloads"):
            return
        new = map_at(write.new, "metadata", "annotations").get(ROOM)
        old = map_at(write.old or {}, "metadata", "annotations").get(ROOM)
        if new == old:
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
                f"metadata.annotations[{ROOM}]: is written by whoever admits the workload; user"
                f' "{user.name}" may not update workloads/{_STATUS}'
            )
            raise forbidden(resource.subject(write.name), why)
