"""Device files that containers get."""

from __future__ import annotations

from pathlib import Path

from drayman.drivers.kit.errors import PrepareError
from drayman.plugins.cdi import DeviceNode


def existing_nodes(root: Path, *paths: str, permissions: str = "") -> list[DeviceNode]:
    """Device files below a root, by their paths without the leading slash. Raises PrepareError for one that is missing.

    A container without it would start and find no device.
    """
    missing = [f"/{path}" for path in paths if not (root / path).exists()]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise PrepareError(f"{', '.join(missing)} {verb} not there; is the device's module loaded?")
    return [DeviceNode(path=f"/{path}", permissions=permissions) for path in paths]
