"""Files by which programs learn what their devices are: the attributes that are published, where they can be read without rights.

There is one for each request of a claim that has devices of the driver. Containers that use the request have it mounted; its path says
which claim of the pod is meant, in the way that Kubernetes' own drivers do it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from drayman.api.codec import encode
from drayman.api.meta import ObjectMeta
from drayman.api.resource import DeviceAttribute, NetworkDeviceData, ResourceClaim
from drayman.api.struct import ApiStruct, always
from drayman.drivers.kit.model import Claim, Prepared, PreparedDevice
from drayman.plugins.cdi import Mount
from drayman.plugins.files import write_atomically

FOLDER: Final = "dra-device-metadata"
CONTAINER_FOLDER: Final = "/var/run/kubernetes.io/dra-device-attributes"
OF_POD: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was made from a template: how its pod calls it."""
_OPTIONS: Final = ("ro", "bind")


class DescribedDevice(ApiStruct):
    driver: str
    pool: str
    name: str
    attributes: dict[str, DeviceAttribute] = {}
    network_data: NetworkDeviceData | None = None


class DescribedRequest(ApiStruct):
    name: str
    devices: tuple[DescribedDevice, ...] = ()


class DeviceMetadata(ApiStruct):
    """What a file says."""

    api_version: str = always("metadata.resource.k8s.io/v1alpha1")
    kind: str = always("DeviceMetadata")
    metadata: ObjectMeta = ObjectMeta()
    pod_claim_name: str | None = None
    requests: tuple[DescribedRequest, ...] = ()


class MetadataFiles:
    """The files of one driver, below its own folder."""

    def __init__(self, driver: str, folder: Path) -> None:
        self._driver = driver
        self._folder = folder / FOLDER

    def add(self, found: ResourceClaim, claim: Claim, prepared: Prepared) -> Prepared:
        """Write the files of a claim, and have containers get them with the devices. Raises OSError."""
        by_device = {each.device.key: each for each in prepared.devices}
        requests: dict[str, list[PreparedDevice]] = {}
        for device in claim.devices:
            one = by_device.setdefault(device.key, PreparedDevice(device=device))
            requests.setdefault(device.main_request, []).append(one)
        for request, devices in requests.items():
            path = self._folder / claim.uid / request / "metadata.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            content = encode(self._described(found, devices)) + b"\n"
            write_atomically(path, content, mode=0o644)
            # Whoever uses the request gets all of its devices, so one of them is enough to bring it.
            key = devices[0].device.key
            mount = Mount(
                host_path=str(path),
                container_path=self._inside(found, request),
                options=_OPTIONS,
            )
            bearer = by_device[key]
            by_device[key] = replace(bearer, mounts=(*bearer.mounts, mount))
        return replace(prepared, devices=tuple(by_device.values()))

    def _described(self, found: ResourceClaim, devices: list[PreparedDevice]) -> DeviceMetadata:
        meta = found.metadata
        about = ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid, generation=1)
        listed = tuple(
            DescribedDevice(
                driver=self._driver,
                pool=each.device.pool,
                name=each.device.name,
                attributes=each.device.device.attributes,
                network_data=each.network,
            )
            for each in devices
        )
        return DeviceMetadata(
            metadata=about,
            pod_claim_name=meta.annotations.get(OF_POD),
            requests=(DescribedRequest(name=devices[0].device.request, devices=listed),),
        )

    def _inside(self, found: ResourceClaim, request: str) -> str:
        own = found.metadata.annotations.get(OF_POD)
        place = f"resourceclaimtemplates/{own}" if own else f"resourceclaims/{found.metadata.name}"
        return f"{CONTAINER_FOLDER}/{place}/{request}/{self._driver}-metadata.json"

    def remove(self, uid: str) -> None:
        """Forget the files of a claim, if there are any. Raises OSError."""
        if (self._folder / uid).is_dir():
            shutil.rmtree(self._folder / uid)
