"""What a container is started with, from its spec, its volumes and its devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from drayman.node.agent.attempts import DeviceFile, Launch
from drayman.node.agent.environment import SourceError, all_expanded, expanded
from drayman.node.agent.spec import Container, PodSecurity, RunnablePod, SecurityContext
from drayman.plugins import cdi
from drayman.plugins.cdi.merging import completed
from drayman.plugins.errors import CdiError


def edits_for(ids: Sequence[str], folders: Sequence[Path]) -> cdi.Container:
    """What the devices of a container add to it. Raises CdiError."""
    if not ids:
        return cdi.merged(())
    edits = cdi.merged(cdi.Devices.load(folders).edits(ids))
    if edits.net_devices:
        names = ", ".join(device.host_interface_name for device in edits.net_devices)
        raise CdiError(
            f"network interface {names} cannot be moved: containers of this node share its network"
        )
    return edits


def launch_of(
    pod: RunnablePod,
    container: Container,
    argv: Sequence[str],
    env: Mapping[str, str],
    volumes: Mapping[str, Path],
    edits: cdi.Container,
    *,
    own_root: bool,
) -> Launch:
    """Raises SourceError and CdiError. `own_root` asks for a root of its own also where nothing is mounted."""
    everything = {**env, **edits.env}
    binds = (
        *_volume_binds(container, volumes, everything),
        *((m.host_path, m.container_path, "ro" in m.options) for m in edits.mounts),
    )
    devices = tuple(_device_file(completed(node)) for node in edits.device_nodes)
    security, of_pod = container.security_context, pod.spec.security_context
    return Launch(
        argv=all_expanded(argv, everything),
        env=everything,
        cwd=container.working_dir or "/",
        own_root=bool(own_root or binds or devices),
        binds=binds,
        devices=devices,
        user=_first(security, of_pod, "run_as_user"),
        group=_first(security, of_pod, "run_as_group"),
        groups=(*(of_pod.supplemental_groups if of_pod else ()), *edits.additional_gids),
    )


def _first(security: SecurityContext | None, of_pod: PodSecurity | None, name: str) -> int | None:
    for each in (security, of_pod):
        found: int | None = getattr(each, name, None)
        if found is not None:
            return found
    return None


def _volume_binds(
    container: Container, volumes: Mapping[str, Path], env: Mapping[str, str]
) -> list[tuple[str, str, bool]]:
    found = []
    for mount in container.volume_mounts:
        volume = volumes[mount.name]
        sub_path = mount.sub_path or expanded(mount.sub_path_expr, env)
        source = volume / sub_path
        if not source.resolve().is_relative_to(volume.resolve()):
            raise SourceError(f"subPath {sub_path} of volume {mount.name} leads out of the volume")
        if not source.exists():
            source.mkdir(parents=True)
        found.append((str(source), mount.mount_path, mount.read_only))
    # A mount point has to be there before what lies below it.
    return sorted(found, key=lambda bind: bind[1].count("/"))


def _device_file(node: cdi.DeviceNode) -> DeviceFile:
    return DeviceFile(
        node.path,
        node.host_path or node.path,
        node.type_,
        node.major,
        node.minor,
        0o666 if node.file_mode is None else node.file_mode & 0o777,
    )
