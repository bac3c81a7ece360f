"""The messages are those that kubelets and drivers exchange: names make up the path of a call, numbers the bytes of a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor

from drayman.plugins.model import HealthState
from drayman.plugins.protocol import (
    dra_v1_pb2,
    dra_v1beta1_pb2,
    generating,
    health_pb2,
    registration_pb2,
)
from drayman.plugins.services import reports_of

STRING, BOOL, INT64, ENUM, MESSAGE = (
    FieldDescriptor.TYPE_STRING,
    FieldDescriptor.TYPE_BOOL,
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_ENUM,
    FieldDescriptor.TYPE_MESSAGE,
)
CLAIM = {"namespace": (1, STRING), "uid": (2, STRING), "name": (3, STRING)}
DEVICE = {
    "request_names": (1, STRING),
    "pool_name": (2, STRING),
    "device_name": (3, STRING),
    "cdi_device_ids": (4, STRING),
}
DRA_MESSAGES = {
    "NodePrepareResourcesRequest": {"claims": (1, MESSAGE)},
    "NodePrepareResourcesResponse": {"claims": (1, MESSAGE)},
    "NodePrepareResourceResponse": {"devices": (1, MESSAGE), "error": (2, STRING)},
    "NodeUnprepareResourcesRequest": {"claims": (1, MESSAGE)},
    "NodeUnprepareResourcesResponse": {"claims": (1, MESSAGE)},
    "NodeUnprepareResourceResponse": {"error": (1, STRING)},
    "Claim": CLAIM,
}
DRA_METHODS = {
    "NodePrepareResources": ("NodePrepareResourcesRequest", "NodePrepareResourcesResponse", False),
    "NodeUnprepareResources": (
        "NodeUnprepareResourcesRequest",
        "NodeUnprepareResourcesResponse",
        False,
    ),
}
TABLE = {
    "registration": (
        registration_pb2,
        "pluginregistration.Registration",
        {
            "GetInfo": ("InfoRequest", "PluginInfo", False),
            "NotifyRegistrationStatus": (
                "RegistrationStatus",
                "RegistrationStatusResponse",
                False,
            ),
        },
        {
            "InfoRequest": {},
            "PluginInfo": {
                "type": (1, STRING),
                "name": (2, STRING),
                "endpoint": (3, STRING),
                "supported_versions": (4, STRING),
            },
            "RegistrationStatus": {"plugin_registered": (1, BOOL), "error": (2, STRING)},
            "RegistrationStatusResponse": {},
        },
    ),
    "v1": (
        dra_v1_pb2,
        "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
        DRA_METHODS,
        DRA_MESSAGES | {"Device": DEVICE | {"share_id": (5, STRING)}},
    ),
    "v1beta1": (
        dra_v1beta1_pb2,
        "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
        DRA_METHODS,
        DRA_MESSAGES | {"Device": DEVICE},
    ),
    "health": (
        health_pb2,
        "v1alpha1.DRAResourceHealth",
        {"NodeWatchResources": ("NodeWatchResourcesRequest", "NodeWatchResourcesResponse", True)},
        {
            "NodeWatchResourcesRequest": {},
            "NodeWatchResourcesResponse": {"devices": (1, MESSAGE)},
            "DeviceIdentifier": {"pool_name": (1, STRING), "device_name": (2, STRING)},
            "DeviceHealth": {
                "device": (1, MESSAGE),
                "health": (2, ENUM),
                "last_updated_time": (3, INT64),
                "health_check_timeout_seconds": (4, INT64),
                "message": (5, STRING),
            },
        },
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_services_have_the_names_of_the_protocol(name: str) -> None:
    """Package, service and methods, with what goes in and comes out."""
    module, service, methods, _ = TABLE[name]
    (found,) = module.DESCRIPTOR.services_by_name.values()
    assert found.full_name == service
    assert {
        each.name: (each.input_type.name, each.output_type.name, each.server_streaming)
        for each in found.methods
    } == methods
    assert not any(each.client_streaming for each in found.methods)


@pytest.mark.parametrize("name", TABLE)
def test_fields_have_the_numbers_of_the_protocol(name: str) -> None:
    """Every message, every field, its number and its type, and nothing else."""
    module, _, _, messages = TABLE[name]
    assert {
        message.name: {field.name: (field.number, field.type) for field in message.fields}
        for message in module.DESCRIPTOR.message_types_by_name.values()
    } == messages


@pytest.mark.parametrize("module", [dra_v1_pb2, dra_v1beta1_pb2])
def test_answers_are_maps_by_uid(module) -> None:
    """Keys are texts, values the answers for one claim."""
    for name, value in (
        ("NodePrepareResourcesResponse", "NodePrepareResourceResponse"),
        ("NodeUnprepareResourcesResponse", "NodeUnprepareResourceResponse"),
    ):
        entry = module.DESCRIPTOR.message_types_by_name[name].fields_by_name["claims"].message_type
        assert entry.GetOptions().map_entry
        assert entry.fields_by_name["key"].type == STRING
        assert entry.fields_by_name["value"].message_type.name == value


def test_an_absent_share_differs_from_an_empty_one() -> None:
    """The id of a share is optional in the sense of the protocol."""
    assert (
        dra_v1_pb2.DESCRIPTOR.message_types_by_name["Device"]
        .fields_by_name["share_id"]
        .has_presence
    )


def test_health_has_the_numbers_of_the_protocol() -> None:
    """States of health go over the wire as numbers."""
    assert dict(health_pb2.HealthStatus.items()) == {"UNKNOWN": 0, "HEALTHY": 1, "UNHEALTHY": 2}


def test_a_health_that_is_not_known_is_unknown() -> None:
    """A later version may have more states, and a driver may be wrong; the reports about its other devices count."""
    reports = [
        health_pb2.DeviceHealth(
            device=health_pb2.DeviceIdentifier(pool_name="n", device_name=name), health=state
        )
        for name, state in (("odd", 7), ("well", 1))
    ]
    found = reports_of(health_pb2.NodeWatchResourcesResponse(devices=reports))
    assert [each.state for each in found] == [HealthState.UNKNOWN, HealthState.HEALTHY]


def test_the_modules_are_what_the_files_generate(tmp_path: Path) -> None:
    """Nobody has edited a generated module, or forgotten to generate it again."""
    generating.generate(tmp_path)
    made = {
        path.name: path.read_text() for path in (tmp_path / "drayman/plugins/protocol").iterdir()
    }
    kept = {path.name: path.read_text() for path in generating.HERE.glob("*_pb2.py*")}
    assert made == kept
