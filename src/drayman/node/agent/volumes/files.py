"""The volumes of a pod: folders with the files that they are to have.

Files are put into a folder of their own and shown by a link that is replaced, so that whoever reads them sees the old ones or the new ones.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from drayman.node.agent.environment import (
    OwnFacts,
    SourceError,
    Sources,
    field_value,
    resource_value,
)
from drayman.node.agent.spec import (
    ConfigMapSource,
    Container,
    DownwardSource,
    Projection,
    RunnablePod,
    SecretSource,
    TokenSource,
    Volume,
)

_MODE: Final = 0o644
_DATA: Final = "..data"
_HOST_KINDS: Final = {
    "Directory": Path.is_dir,
    "File": Path.is_file,
    "Socket": Path.is_socket,
    "CharDevice": Path.is_char_device,
    "BlockDevice": Path.is_block_device,
}


@dataclass(frozen=True, slots=True)
class VolumeFile:
    content: bytes
    mode: int = _MODE


Tokens = Mapping[TokenSource, str]
"""Tokens that were requested for the service account of a pod, by what asks for them."""


def wanted_tokens(volume: Volume) -> list[TokenSource]:
    sources = () if volume.projected is None else volume.projected.sources
    tokens = (source.service_account_token for source in sources)
    return [token for token in tokens if token is not None]


def files_of(
    pod: RunnablePod, volume: Volume, sources: Sources, tokens: Tokens, facts: OwnFacts
) -> dict[str, VolumeFile] | None:
    """The files of a volume, by path; None for a volume that has no files of its own. Raises SourceError."""
    if volume.config_map is not None:
        of = volume.config_map
        return _chosen(sources.config_map(of.name, of.optional), of, of.default_mode)
    if volume.secret is not None:
        secret = volume.secret
        data = sources.secret(secret.secret_name, secret.optional)
        return _chosen(data, secret, secret.default_mode)
    if volume.downward_api is not None:
        return _downward(pod, volume.downward_api, volume.downward_api.default_mode, facts)
    if volume.projected is not None:
        found: dict[str, VolumeFile] = {}
        for each in volume.projected.sources:
            mode = volume.projected.default_mode
            found |= _projected(pod, each, mode, sources, tokens, facts)
        return found
    return None


def _projected(
    pod: RunnablePod,
    source: Projection,
    mode: int | None,
    sources: Sources,
    tokens: Tokens,
    facts: OwnFacts,
) -> dict[str, VolumeFile]:
    if source.config_map is not None:
        of = source.config_map
        return _chosen(sources.config_map(of.name, of.optional), of, mode)
    if source.secret is not None:
        secret = source.secret
        return _chosen(sources.secret(secret.name, secret.optional), secret, mode)
    if source.downward_api is not None:
        return _downward(pod, source.downward_api, mode, facts)
    if source.service_account_token is not None:
        token = source.service_account_token
        return {token.path: VolumeFile(tokens[token].encode(), mode or _MODE)}
    raise SourceError("a projected volume has a source that is not known to this node")


def _chosen(
    data: Mapping[str, bytes], source: ConfigMapSource | SecretSource, mode: int | None
) -> dict[str, VolumeFile]:
    if not source.items:
        return {key: VolumeFile(value, mode or _MODE) for key, value in data.items()}
    found: dict[str, VolumeFile] = {}
    for item in source.items:
        if item.key in data:
            found[item.path] = VolumeFile(data[item.key], item.mode or mode or _MODE)
        elif not source.optional:
            raise SourceError(f"references non-existent key: {item.key}")
    return found


def _downward(
    pod: RunnablePod, source: DownwardSource, mode: int | None, facts: OwnFacts
) -> dict[str, VolumeFile]:
    found: dict[str, VolumeFile] = {}
    for item in source.items:
        if item.field_ref is not None:
            text = field_value(pod, item.field_ref.field_path, facts)
        elif item.resource_field_ref is not None:
            text = resource_value(pod, Container(), item.resource_field_ref, facts)
        else:
            raise SourceError(f"file {item.path} has no source")
        found[item.path] = VolumeFile(text.encode(), item.mode or mode or _MODE)
    return found


def set_up(folder: Path, volume: Volume, files: Mapping[str, VolumeFile] | None) -> Path:
    """Make a volume in its folder, or bring it up to date; returns what containers are shown. Raises SourceError and OSError."""
    if volume.host_path is not None:
        return _host_path(Path(volume.host_path.path), volume.host_path.type_)
    folder.mkdir(parents=True, exist_ok=True)
    if files is not None:
        _write_files(folder, files)
    elif volume.empty_dir is not None:
        folder.chmod(0o777)
    else:
        raise SourceError(
            f"volume {volume.name} is of a kind that this node does not have;"
            " it has configMap, downwardAPI, emptyDir, hostPath, projected and secret"
        )
    return folder


def _host_path(path: Path, kind: str) -> Path:
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch()
    elif kind and not _HOST_KINDS[kind](path):
        raise SourceError(f"hostPath type check failed: {path} is not a {kind}")
    if not path.exists():
        raise SourceError(f"hostPath {path} does not exist")
    return path


def _write_files(folder: Path, files: Mapping[str, VolumeFile]) -> None:
    """As other nodes do it: a hidden folder, `..data` that leads there, and a link for each name that leads through `..data`."""
    current = folder / _DATA
    before = os.readlink(current) if current.is_symlink() else ""
    if _is_hidden_folder(before) and _content(folder / before) == dict(files):
        return
    fresh = folder / f"..{secrets.token_hex(8)}"
    for name, file in files.items():
        path = fresh / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        path.chmod(file.mode)
    fresh.mkdir(exist_ok=True)
    link = folder / f"..link{secrets.token_hex(4)}"
    link.symlink_to(fresh.name)
    link.replace(current)
    tops = {name.partition("/")[0] for name in files}
    for each in folder.iterdir():
        if each.is_symlink() and not each.name.startswith("..") and each.name not in tops:
            each.unlink()
    for top in tops:
        if not (folder / top).is_symlink():
            (folder / top).symlink_to(Path(_DATA, top))
    if _is_hidden_folder(before):
        shutil.rmtree(folder / before, ignore_errors=True)


def _is_hidden_folder(name: str) -> bool:
    """Whether a link led to a folder that was made here. A container that may write to the volume can have it lead anywhere."""
    return name.startswith("..") and "/" not in name and name not in ("..", _DATA)


def _content(folder: Path) -> dict[str, VolumeFile]:
    return {
        str(path.relative_to(folder)): VolumeFile(path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file()
    }
