"""The contents of a kubeconfig file, member by member.

Members that are not known here are ignored, as kubectl does: tools keep settings of their own in these files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
import yaml

from drayman.api.struct import Json
from drayman.api.syntax.yaml_text import syntax_problem
from drayman.cluster.errors import ConfigurationError


class _Entry(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Base of the entries: names are written with hyphens unless a field says otherwise."""


class ClusterEntry(_Entry, frozen=True, kw_only=True):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Json] = []


class Variable(_Entry, frozen=True, kw_only=True):
    name: str
    value: str = ""


class ExecEntry(_Entry, frozen=True, kw_only=True):
    api_version: str = msgspec.field(name="apiVersion", default="")
    command: str = ""
    args: list[str] = []
    env: list[Variable] = []
    install_hint: str = msgspec.field(name="installHint", default="")
    interactive_mode: Literal["", "Never", "IfAvailable", "Always"] = msgspec.field(
        name="interactiveMode", default=""
    )
    provide_cluster_info: bool = msgspec.field(name="provideClusterInfo", default=False)


class UserEntry(_Entry, frozen=True, kw_only=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec_: ExecEntry | None = msgspec.field(name="exec", default=None)
    auth_provider: Json = None
    as_: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}


class ContextEntry(_Entry, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(_Entry, frozen=True, kw_only=True):
    name: str
    cluster: ClusterEntry = ClusterEntry()


class NamedUser(_Entry, frozen=True, kw_only=True):
    name: str
    user: UserEntry = UserEntry()


class NamedContext(_Entry, frozen=True, kw_only=True):
    name: str
    context: ContextEntry = ContextEntry()


class KubeconfigFile(_Entry, frozen=True, kw_only=True):
    current_context: str = ""
    clusters: list[NamedCluster] = []
    users: list[NamedUser] = []
    contexts: list[NamedContext] = []


def read_file(path: Path) -> KubeconfigFile:
    """One file. Raises ConfigurationError, also where it does not exist."""
    return _parsed(path, _read(path))


def parse_text(name: str, content: bytes) -> KubeconfigFile:
    """What is in a kubeconfig that is not a file. `name` is what errors call it. Raises ConfigurationError."""
    return _parsed(name, _loaded(name, content))


def read_members(path: Path) -> dict[str, Json]:
    """One file with everything that stands in it, as far as it is a kubeconfig. Raises ConfigurationError, also where it does not exist."""
    value = _read(path)
    _parsed(path, value)
    assert isinstance(value, dict)
    return value


def _read(path: Path) -> Json:
    try:
        content = path.read_bytes()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ConfigurationError(f"kubeconfig {path}: cannot be read: {why}") from error
    return _loaded(path, content)


def _loaded(path: Path | str, content: bytes) -> Json:
    try:
        found = [each for each in yaml.load_all(content, Loader=_LOADER) if each is not None]
    except yaml.YAMLError as error:
        line, problem = syntax_problem(content.decode(errors="replace"), error)
        where = f"{path}:{line}" if line else str(path)
        raise ConfigurationError(f"kubeconfig {where}: {problem}") from error
    if len(found) > 1:
        raise ConfigurationError(f"{path} is no kubeconfig: it has {len(found)} documents")
    return _without_nulls(found[0] if found else {})


def _parsed(path: Path | str, value: Json) -> KubeconfigFile:
    if isinstance(value, dict) and (value.get("kind") or _KIND) != _KIND:
        raise ConfigurationError(
            f"{path} is no kubeconfig: kind is {value['kind']!r}, not {_KIND!r}"
        )
    try:
        return msgspec.convert(value, KubeconfigFile)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"kubeconfig {path}: {error}") from error


_KIND: Final = "Config"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _without_nulls(value: Json) -> Json:
    """Null means absent, as everywhere in Kubernetes' files."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
