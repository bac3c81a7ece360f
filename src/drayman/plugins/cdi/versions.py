"""Versions of the specification, and which one a file needs.

A reader refuses a file of a version that it does not know, so a file declares the lowest one that has all the fields it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from drayman.plugins.cdi.model import ContainerEdits, Spec

VERSIONS: Final = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
LATEST: Final = VERSIONS[-1]


def lowest_version(spec: Spec) -> str:
    """The lowest version that covers what a specification uses."""
    edits = tuple(_edits(spec))
    for version, needs in _NEEDS:
        if needs(spec, edits):
            return version
    return VERSIONS[0]


_Edits = tuple[ContainerEdits, ...]


def _edits(spec: Spec) -> Iterator[ContainerEdits]:
    yield spec.container_edits
    for device in spec.devices:
        yield device.container_edits


def _needs_1_1(_spec: Spec, edits: _Edits) -> bool:
    return any(
        each.net_devices
        or (each.intel_rdt and (each.intel_rdt.schemata or each.intel_rdt.enable_monitoring))
        for each in edits
    )


def _needs_0_7(_spec: Spec, edits: _Edits) -> bool:
    return any(each.additional_gids or each.intel_rdt is not None for each in edits)


def _needs_0_6(spec: Spec, _edits: _Edits) -> bool:
    """Annotations, and classes with dots."""
    return bool(
        spec.annotations or "." in spec.class_ or any(device.annotations for device in spec.devices)
    )


def _needs_0_5(spec: Spec, edits: _Edits) -> bool:
    """Device nodes with another path on the host, and devices whose names begin with a digit."""
    return any(node.host_path for each in edits for node in each.device_nodes) or any(
        device.name[:1].isdigit() for device in spec.devices
    )


def _needs_0_4(_spec: Spec, edits: _Edits) -> bool:
    return any(mount.type_ for each in edits for mount in each.mounts)


_NEEDS: Final[tuple[tuple[str, Callable[[Spec, _Edits], bool]], ...]] = (
    ("1.1.0", _needs_1_1),
    ("0.7.0", _needs_0_7),
    ("0.6.0", _needs_0_6),
    ("0.5.0", _needs_0_5),
    ("0.4.0", _needs_0_4),
)
