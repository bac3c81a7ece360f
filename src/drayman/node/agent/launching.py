"""What a container is started with, from its spec, its volumes and its devices."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from drayman.node.agent.environment import SourceError, all_expanded, expanded
from drayman.node.agent.processes import beneath
from drayman.node.agent.processes.attempts import Bind, DeviceFile, Launch
from drayman.node.agent.processes.roots import REVEALING_CAPABILITIES
from drayman.node.agent.spec import (
    Container,
    PodSecurity,
    RunnablePod,
    Security,
    security_of,
)
from drayman.plugins import cdi
from drayman.plugins.cdi.merging import completed
from drayman.plugins.errors import CdiError
from drayman.reasons.shared_network import unmovable


def edits_for(ids: Sequence[str], folders: Sequence[Path]) -> cdi.Container:
    """What the devices of a container add to it. Raises CdiError."""
    if not ids:
        return cdi.merged(())
    edits = cdi.merged(cdi.Devices.load(folders).edits(ids))
    if edits.net_devices:
        raise CdiError(unmovable(device.host_interface_name for device in edits.net_devices))
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
    image_root: str = "",
    is_writable: bool = True,
    hidden: Sequence[Path] = (),
    hides: bool = False,
) -> Launch:
    """Raises SourceError and CdiError. `own_root` asks for a root of its own also where nothing is mounted.

    `hidden` are real paths that a container does not see, as far as it has a root of its own. `hides` says whether the machine has the
    means to keep them from a container of root.

    `image_root` is what the container sees instead of the host's files, and `is_writable` whether it may change that.
    """
    everything = {**env, **edits.env}
    binds = [
        *_volume_binds(pod, container, volumes, everything),
        *(Bind(m.host_path, _normal(m.container_path), "ro" in m.options) for m in edits.mounts),
    ]
    # A mount point has to be there before what lies below it, whoever asks for which.
    binds.sort(key=lambda bind: len(PurePosixPath(bind.target).parts))
    devices = tuple(_device_file(completed(node)) for node in edits.device_nodes)
    own, security = container.security_context, security_of(pod, container)
    _refuse_root(pod, container, security)
    has_root = bool(own_root or binds or devices or image_root)
    return Launch(
        argv=all_expanded(argv, everything),
        env=everything,
        cwd=container.working_dir or "/",
        own_root=has_root,
        hidden=tuple(map(str, hidden)),
        is_sealed=has_root and hides and os.geteuid() == 0 and not reveals(container),
        image_root=image_root,
        is_writable=is_writable,
        binds=tuple(binds),
        devices=devices,
        user=security.run_as_user,
        group=security.run_as_group,
        groups=(*_groups(pod.spec.security_context), *edits.additional_gids),
        no_new_privileges=own is not None and own.allow_privilege_escalation is False,
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
    )


def reveals(container: Container) -> bool:
    """Whether a container asks for privileges with which nothing can be hidden from it."""
    security = container.security_context
    if security is None:
        return False
    capabilities = security.capabilities
    added = () if capabilities is None else capabilities.add
    names = {name.upper().removeprefix("CAP_") for name in added}
    return security.privileged or not names.isdisjoint({"ALL", *REVEALING_CAPABILITIES})


def _groups(of_pod: PodSecurity | None) -> tuple[int, ...]:
    """Those that the processes of a pod are in besides their own."""
    if of_pod is None:
        return ()
    own = () if of_pod.fs_group is None else (of_pod.fs_group,)
    return tuple(dict.fromkeys((*own, *of_pod.supplemental_groups)))


def _refuse_root(pod: RunnablePod, container: Container, security: Security) -> None:
    """Raises SourceError, in the words of a kubelet, if a container would run as root that must not."""
    if not security.run_as_non_root:
        return
    meta = pod.metadata
    who = f'(pod: "{meta.name}_{meta.namespace}({meta.uid})", container: {container.name})'
    if security.run_as_user == 0:
        raise SourceError(f"container's runAsUser breaks non-root policy {who}")
    if security.run_as_user is None and os.geteuid() == 0:
        raise SourceError(f"container has runAsNonRoot and image will run as root {who}")


def _volume_binds(
    pod: RunnablePod, container: Container, volumes: Mapping[str, Path], env: Mapping[str, str]
) -> list[Bind]:
    filled = {volume.name for volume in pod.spec.volumes if volume.has_files}
    found = []
    for mount in container.volume_mounts:
        sub_path = mount.sub_path or expanded(mount.sub_path_expr, env)
        if sub_path:
            _make_sub_path(volumes[mount.name], sub_path, mount.name)
        # What the node fills in is for reading, whatever the mount says.
        read_only = mount.read_only or mount.name in filled
        target = _normal(mount.mount_path)
        found.append(Bind(str(volumes[mount.name]), target, read_only, sub_path))
    return found


def _make_sub_path(volume: Path, sub_path: str, name: str) -> None:
    """Make the directories that a mount of a part of a volume needs, with the mode of the volume. Raises SourceError and OSError.

    Where a volume belongs to a group, its mode passes the group on.
    """
    base = os.open(volume, os.O_PATH)
    try:
        mode = stat.S_IMODE(os.fstat(base).st_mode)
        os.close(beneath.open_below(base, sub_path, follows=True, mode=mode))
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.ELOOP):
            raise
        problem = f"subPath {sub_path} of volume {name} leads out of the volume"
        raise SourceError(problem) from error
    finally:
        os.close(base)


def _normal(path: str) -> str:
    """A path of a container without what means nothing in it, so that it can be told what lies below what."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _device_file(node: cdi.DeviceNode) -> DeviceFile:
    return DeviceFile(
        _normal(node.path),
        node.host_path or node.path,
        node.type_,
        node.major,
        node.minor,
        0o666 if node.file_mode is None else node.file_mode & 0o777,
        node.uid,
        node.gid,
    )
