"""What a prepared claim is to a container runtime: a CDI file of its own, with one device for each device that has edits."""

from __future__ import annotations

from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import Allocated, Claim, DeviceKey, Prepared
from drayman.plugins.cdi import CdiDevice, Spec, qualified
from drayman.plugins.model import Ready, ReadyDevice


def cdi_kind(driver: str) -> str:
    """The kind of the devices that are made for claims."""
    return f"k8s.{driver}/claim"


def answer_for(driver: str, claim: Claim, prepared: Prepared) -> tuple[Ready, Spec | None]:
    """What a node is told about a claim, and the CDI file for it, if it needs one. Raises PrepareError."""
    by_key = {each.device.key: each for each in prepared.devices}
    strange = set(by_key) - {device.key for device in claim.devices}
    if strange:
        names = ", ".join(sorted(f"{pool}/{name}" for pool, name, _ in strange))
        raise PrepareError(
            f"driver {driver} has prepared {names}, which claim {claim} does not have"
        )
    kind = cdi_kind(driver)
    common = prepared.edits
    made: dict[str, CdiDevice] = {}
    ready: dict[DeviceKey, ReadyDevice] = {}
    for device in claim.devices:
        key = device.key
        before = ready.get(key)
        if before is not None:  # allocated for several requests, by looking at it
            requests = tuple(dict.fromkeys((*before.requests, device.main_request)))
            ready[key] = ReadyDevice(requests, *key[:2], before.cdi_ids, device.share_id)
            continue
        result = by_key.get(key)
        edits = result.edits if result is not None else None
        ids: tuple[str, ...] = tuple(result.cdi_ids) if result is not None else ()
        if edits is None or edits.is_empty:
            # A device needs edits of its own; what all containers get goes with it.
            edits = common
        if not edits.is_empty:
            name = _cdi_name(claim, device)
            made[name] = CdiDevice(name=name, container_edits=edits)
            ids = (*ids, qualified(kind, name))
        ready[key] = ReadyDevice((device.main_request,), *key[:2], ids, device.share_id)
    answer = Ready(tuple(ready.values()))
    if not made:
        return answer, None
    return answer, Spec(kind=kind, devices=tuple(made.values()), container_edits=common)


def _cdi_name(claim: Claim, device: Allocated) -> str:
    share = "" if device.share_id is None else f"-{device.share_id}"
    return f"{claim.uid}-{device.name}{share}"
