"""Files about devices, as containers find them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from drayman.api.resource import Device, DeviceAttribute
from drayman.cluster import merge_patch
from drayman.cluster.resources import RESOURCE_CLAIMS
from drayman.drivers.kit import Plugin
from drivers.kit.probing import NAME, NODE, Probe, World, world

INSIDE = "/var/run/kubernetes.io/dra-device-attributes"


class DescribedProbe(Probe):
    def discover(self) -> Iterable[Device]:
        attributes = {"model": DeviceAttribute(string="p1"), "index": DeviceAttribute(int_=3)}
        return [replace(each, attributes=attributes) for each in super().discover()]


def plugin(w: World) -> Plugin:
    options = replace(w.kubelet.options(NAME), device_metadata=True)
    return Plugin(DescribedProbe(), w.cluster.client, options)


CLAIMS = {
    "of its own": ({}, "resourceclaims/c", None),
    "from a template": (
        {"resource.kubernetes.io/pod-claim-name": "gpu"},
        "resourceclaimtemplates/gpu",
        "gpu",
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
async def test_containers_read_the_attributes_of_their_devices(name: str) -> None:
    """One file for each request they use, in the format and place of Kubernetes' own helpers, until the claim is unprepared."""
    annotations, place, own = CLAIMS[name]
    async with world() as w, plugin(w):
        claim = await w.claim("c", "probe-0", "probe-1")
        patch = merge_patch({"metadata": {"annotations": annotations}})
        await w.cluster.client.patch(RESOURCE_CLAIMS.as_values(), "c", patch, "default")
        answer = await w.kubelet.prepare(NAME, claim)
        (mount,) = w.kubelet.container(answer, "b").mounts
        assert mount.container_path == f"{INSIDE}/{place}/b/{NAME}-metadata.json"
        assert "ro" in mount.options
        path = Path(mount.host_path)
        assert path.stat().st_mode & 0o777 == 0o644
        meta = {
            "name": "c",
            "namespace": "default",
            "uid": claim.metadata.uid,
            "generation": 1,
        }
        device = {
            "driver": NAME,
            "pool": NODE,
            "name": "probe-1",
            "attributes": {"model": {"string": "p1"}, "index": {"int": 3}},
        }
        assert msgspec.json.decode(path.read_bytes()) == {
            "apiVersion": "metadata.resource.k8s.io/v1alpha1",
            "kind": "DeviceMetadata",
            "metadata": meta,
            **({"podClaimName": own} if own else {}),
            "requests": [{"name": "b", "devices": [device]}],
        }
        assert len(w.kubelet.container(answer).mounts) == 2
        assert await w.kubelet.prepare(NAME, claim) == answer
        assert await w.kubelet.unprepare(NAME, claim) is None
        assert not path.parents[1].exists()


async def test_without_the_option_there_are_no_files() -> None:
    """They are alpha in Kubernetes."""
    async with world() as w, w.plugin(DescribedProbe()):
        answer = await w.kubelet.prepare(NAME, await w.claim("c", "probe-0"))
        assert w.kubelet.container(answer).mounts == ()
