"""Where Drayman is known to differ from the records, by name and with the reason.

This is the only list of exceptions. A record that is in it and agrees fails the test as much as one that is not and differs, so the list
shrinks with every difference that goes away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

_NOT_SERVED: Final = "the kind is not served"
_NO_DIFF: Final = "the text does not end with a diff of the Go values"
_NO_PROTOBUF: Final = "the forms that are offered are JSON and YAML"
_WHOLE_OBJECT: Final = "the text quotes the patched object, not the patch"
_NO_EMPTY_LIST: Final = "an empty list is quoted as null: it counts as an absent one"
_ONE_NAME: Final = (
    "two alternatives have one name, so that the checker cannot tell which of them was served"
)
_UNDECLARED: Final = "a resource that no group covers is named as the reason; Kueue loses it if others of the pod set come after it"

_FEWER_EVICTIONS: Final = "the same runs, and fewer pods are evicted on the way"
_OTHER_EVICTIONS: Final = "the same runs, and another pod is moved on the way"
_BY_CHANCE: Final = "hangs on names there; here another choice between equals is made"

DIFFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "allocator/table": {
        "consumable-capacity-multi-allocatable-device-with-subrequest": _ONE_NAME,
    },
    "allocator/table best": {
        "consumable-capacity-multi-allocatable-device-with-subrequest": _ONE_NAME,
    },
    "api/validation": {
        "pod/v1/create/core-priority-class-system": "classes of the system outside kube-system need a quota",
    },
    "api/validation texts": {
        "pod/v1/update/claims-added": _NO_DIFF,
        "pod/v1/update/claims-changed": _NO_DIFF,
        "pod/v1/update/container-claims-removed": _NO_DIFF,
        "pod/v1/update/extended-changed": _NO_DIFF,
        "slice/v1beta1/create/nodes-selector-no-terms": _NO_EMPTY_LIST,
    },
    "api/defaults": {
        "NetworkPolicy/v1/egress": _NOT_SERVED,
        "NetworkPolicy/v1/minimal": _NOT_SERVED,
        "ValidatingAdmissionPolicy/v1/minimal": _NOT_SERVED,
        "ValidatingWebhookConfiguration/v1/minimal": _NOT_SERVED,
    },
    "api/scenarios": {
        "pod/quota-exceeded": "quota is not enforced by admission",
        "views/table-claim-deleted": "tables of claims have columns for the node and the devices",
    },
    "queues/scenarios": {
        "departments-r18": "the same runs; a gang of which moved members found their places taken is ended, not left",
        "hierarchy-r26": _OTHER_EVICTIONS,
        "hierarchy-r40": _FEWER_EVICTIONS,
        "nonpreemptible-r43": _FEWER_EVICTIONS,
        "subgroups-r36": "pods of different size share a domain that KAI takes to be too small",
        "subgroups-r58": _BY_CHANCE,
        "subgroups-r62": _BY_CHANCE,
    },
    "api/scenarios texts": {
        "crd/no-storage": "the text quotes the versions as they were sent, not as Go prints them",
        "crd/two-storage": "the text quotes the versions as they were sent, not as Go prints them",
        "custom/wrong-version": "a refused version comes without warnings about the fields",
        "errors/accept-garbage": _NO_PROTOBUF,
        "errors/accept-html": _NO_PROTOBUF,
        "pod/ephemeral-container": _NO_DIFF,
        "strategic/deployment-list-instead-of-map": _WHOLE_OBJECT,
        "strategic/deployment-wrong-type": _WHOLE_OBJECT,
    },
    "quota/scenarios reasons": {
        "fair-tree-042": "w10 waits with others of its shape, and another one of them was tried",
        "groups-001": _UNDECLARED,
        "groups-002": _UNDECLARED,
        "groups-004": _UNDECLARED,
        "groups-007": _UNDECLARED,
        "groups-008": _UNDECLARED,
        "groups-009": _UNDECLARED,
        "groups-011": _UNDECLARED,
        "groups-012": _UNDECLARED,
        "groups-014": _UNDECLARED,
        "groups-016": _UNDECLARED,
        "groups-022": _UNDECLARED,
        "groups-027": _UNDECLARED,
        "groups-029": _UNDECLARED,
        "groups-031": _UNDECLARED,
        "groups-033": _UNDECLARED,
        "groups-042": _UNDECLARED,
        "groups-052": _UNDECLARED,
        "groups-054": _UNDECLARED,
    },
}
"""By the file, followed by what is compared where that is not all of the record, and by the name of the record."""


def assert_only_known_differences(
    file: str, compared: Collection[str], differing: Mapping[str, str]
) -> None:
    """The records that differ, each with what differs, are those of the list, as far as they were compared."""
    known = DIFFERENCES.get(file, {})
    new = {name: text for name, text in differing.items() if name not in known}
    gone = [name for name in known if name in compared and name not in differing]
    report = [f"{name}: {text}" for name, text in new.items()]
    report += [f"{name} agrees now; take it off the list of differences" for name in gone]
    assert not report, "\n".join((f"{len(report)} of {len(compared)} in {file}", *report))
