"""How a driver is run on a node."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from drayman.plugins.cdi.model import DYNAMIC_DIR
from drayman.plugins.sockets import PLUGINS, REGISTRY


class PluginOptions(Struct, frozen=True, kw_only=True):
    """Where the node looks for plugins, and what becomes of what they publish."""

    plugin_dir: Path | None = None
    """The driver's own folder. By default the one that the kubelet has for it."""
    registry_dir: Path = REGISTRY
    cdi_dir: Path = Path(DYNAMIC_DIR)
    runs_hooks: bool = True
    """Whether the container runtime runs the hooks of CDI files. The node of `drayman node run` does not."""
    device_metadata: bool = False
    """Whether containers get files with the attributes of their devices."""
    instance: str = ""
    """A name for this instance, such as the uid of its pod, so that a newer one can start before it ends."""
    wipe_on_exit: bool = False
    """Whether slices are deleted at the end. They stay otherwise, for the instance that comes next."""
    metrics_port: int | None = None
    boot_id: str = ""
    """What tells one boot of the machine from another; by default what the kernel says."""

    def folder_of(self, driver: str) -> Path:
        return self.plugin_dir or PLUGINS / driver
