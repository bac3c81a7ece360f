"""Reading kubeconfig files.

A kubeconfig names clusters, users, and contexts that join one of each. Several files (KUBECONFIG is a list) count as one: the first of two
entries with the same name wins. Paths inside a file are relative to the file, not to where we run.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from drayman.api.struct import Json
from drayman.cluster.errors import ConfigurationError, CredentialsError
from drayman.cluster.kube.connection import Connection, Trust
from drayman.cluster.kube.credentials import (
    ClientCertificate,
    Credential,
    Credentials,
    StaticCredentials,
    TokenFileCredentials,
    basic,
    bearer,
)
from drayman.cluster.kube.entries import (
    ClusterEntry,
    ContextEntry,
    ExecEntry,
    KubeconfigFile,
    UserEntry,
    read_file,
)
from drayman.cluster.kube.exec_plugin import EXEC_VERSIONS, ExecCredentials, ExecPlugin
from drayman.cluster.kube.proxies import is_web_address, proxy_of

EntryT = TypeVar("EntryT")
Placed = tuple[Path, EntryT]
"""An entry with the folder that its paths are relative to."""


@dataclass(slots=True)
class Kubeconfig:
    """One or more kubeconfig files taken together."""

    current_context: str = ""
    clusters: dict[str, Placed[ClusterEntry]] = field(default_factory=dict)
    users: dict[str, Placed[UserEntry]] = field(default_factory=dict)
    contexts: dict[str, ContextEntry] = field(default_factory=dict)

    @staticmethod
    def load(paths: Iterable[Path]) -> Kubeconfig:
        """Reads files in order. Raises ConfigurationError, also where one does not exist."""
        merged = Kubeconfig()
        for path in paths:
            merged._add(path.parent.absolute(), read_file(path))
        return merged

    @staticmethod
    def of(file: KubeconfigFile, folder: Path) -> Kubeconfig:
        """Entries that were read already. Paths in them are relative to the folder."""
        made = Kubeconfig()
        made._add(folder.absolute(), file)
        return made

    def _add(self, folder: Path, file: KubeconfigFile) -> None:
        self.current_context = self.current_context or file.current_context
        for cluster in file.clusters:
            self.clusters.setdefault(cluster.name, (folder, cluster.cluster))
        for user in file.users:
            self.users.setdefault(user.name, (folder, user.user))
        for context in file.contexts:
            self.contexts.setdefault(context.name, context.context)

    def connection(self, context: str = "") -> Connection:
        """The connection for a context; without a name, for the current one. Raises ConfigurationError."""
        name = context or self.current_context
        if not name:
            raise ConfigurationError("the kubeconfig has no current-context; name one")
        chosen = _lookup("context", name, self.contexts)
        folder, cluster = _lookup("cluster", chosen.cluster, self.clusters)
        # A context without a user is an anonymous one.
        user = _lookup("user", chosen.user, self.users) if chosen.user else (folder, UserEntry())
        trust = _trust(chosen.cluster, folder, cluster)
        return Connection(
            server=_server(chosen.cluster, cluster),
            name=f"context {name}",
            trust=trust,
            credentials=_credentials(chosen.user, *user, _cluster_info(cluster, trust)),
            proxy=_proxy(chosen.cluster, cluster),
            namespace=chosen.namespace or "default",
            headers=_impersonation(chosen.user, user[1]),
        )


def _lookup(kind: str, name: str, table: Mapping[str, EntryT]) -> EntryT:
    if name not in table:
        known = ", ".join(sorted(table)) or "none"
        raise ConfigurationError(f"the kubeconfig has no {kind} {name!r}; it has: {known}")
    return table[name]


def _server(name: str, cluster: ClusterEntry) -> str:
    if not is_web_address(cluster.server):
        raise ConfigurationError(
            f"cluster {name!r}: server {cluster.server!r} is not an http or https address"
        )
    return cluster.server.rstrip("/")


def _proxy(name: str, cluster: ClusterEntry) -> str:
    if cluster.proxy_url and not is_web_address(cluster.proxy_url):
        raise ConfigurationError(
            f"cluster {name!r}: proxy-url {cluster.proxy_url!r}: only http and https proxies are supported"
        )
    return cluster.proxy_url or proxy_of(cluster.server, os.environ)


def _trust(name: str, folder: Path, cluster: ClusterEntry) -> Trust:
    where = f"cluster {name!r}"
    authority = _content(
        f"{where}: certificate-authority",
        folder,
        cluster.certificate_authority_data,
        cluster.certificate_authority,
    )
    if cluster.insecure_skip_tls_verify and authority is not None:
        raise ConfigurationError(
            f"{where}: insecure-skip-tls-verify together with a certificate-authority"
        )
    return Trust(authority, cluster.insecure_skip_tls_verify, cluster.tls_server_name)


def _content(where: str, folder: Path, data: str, file: str) -> bytes | None:
    """Inline data wins over a file of the same meaning."""
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ConfigurationError(f"{where}-data is not base64: {error}") from error
    if file:
        try:
            return (folder / file).read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{where}: {error}") from error
    return None


def _credentials(name: str, folder: Path, user: UserEntry, cluster: dict[str, Json]) -> Credentials:
    where = f"user {name!r}"
    certificate = _certificate(where, folder, user)
    if user.token_file:
        return TokenFileCredentials(folder / user.token_file, certificate)
    if user.token:
        try:
            return StaticCredentials(Credential(bearer(user.token), certificate))
        except CredentialsError as error:
            raise ConfigurationError(f"{where}: {error}") from error
    if user.username or user.password:
        return StaticCredentials(Credential(basic(user.username, user.password), certificate))
    if user.exec_ is not None:
        if certificate is not None:
            raise ConfigurationError(f"{where}: an exec plugin together with a client certificate")
        return ExecCredentials(_plugin(where, folder, user.exec_, cluster))
    if user.auth_provider is not None:
        raise ConfigurationError(
            f"{where}: auth-provider was removed from Kubernetes; use an exec plugin in its place"
        )
    return StaticCredentials(Credential(certificate=certificate))


def _certificate(where: str, folder: Path, user: UserEntry) -> ClientCertificate | None:
    chain = _content(
        f"{where}: client-certificate",
        folder,
        user.client_certificate_data,
        user.client_certificate,
    )
    key = _content(f"{where}: client-key", folder, user.client_key_data, user.client_key)
    if chain is None and key is None:
        return None
    if chain is None or key is None:
        raise ConfigurationError(
            f"{where}: a client certificate needs its key, and a key its certificate"
        )
    return ClientCertificate(chain, key)


def _plugin(where: str, folder: Path, entry: ExecEntry, cluster: dict[str, Json]) -> ExecPlugin:
    if entry.api_version not in EXEC_VERSIONS:
        raise ConfigurationError(
            f"{where}: exec apiVersion {entry.api_version!r} is none of {', '.join(EXEC_VERSIONS)}"
        )
    if not entry.command:
        raise ConfigurationError(f"{where}: exec has no command")
    if entry.api_version == EXEC_VERSIONS[0] and not entry.interactive_mode:
        raise ConfigurationError(f"{where}: exec has no interactiveMode, which v1 needs")
    return ExecPlugin(
        entry.api_version,
        entry.command,
        tuple(entry.args),
        {variable.name: variable.value for variable in entry.env},
        folder,
        entry.install_hint,
        entry.interactive_mode or "IfAvailable",
        cluster if entry.provide_cluster_info else None,
    )


_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"


def _cluster_info(cluster: ClusterEntry, trust: Trust) -> dict[str, Json]:
    """The cluster as an exec plugin sees it in KUBERNETES_EXEC_INFO."""
    info: dict[str, Json] = {"server": cluster.server}
    if trust.ca is not None:
        info["certificate-authority-data"] = base64.b64encode(trust.ca).decode("ascii")
    if trust.insecure:
        info["insecure-skip-tls-verify"] = True
    if trust.server_name:
        info["tls-server-name"] = trust.server_name
    if cluster.proxy_url:
        info["proxy-url"] = cluster.proxy_url
    for extension in cluster.extensions:
        if isinstance(extension, dict) and extension.get("name") == _EXEC_EXTENSION:
            info["config"] = extension.get("extension")
    return info


def _impersonation(name: str, user: UserEntry) -> dict[str, str | tuple[str, ...]]:
    if not user.as_:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise ConfigurationError(f"user {name!r}: as-uid, as-groups and as-user-extra need as")
        return {}
    headers: dict[str, str | tuple[str, ...]] = {"Impersonate-User": user.as_}
    if user.as_uid:
        headers["Impersonate-Uid"] = user.as_uid
    if user.as_groups:
        headers["Impersonate-Group"] = tuple(user.as_groups)
    for key, values in user.as_user_extra.items():
        headers[f"Impersonate-Extra-{key}"] = tuple(values)
    return headers


def default_paths(environment: Mapping[str, str] | None = None) -> list[Path]:
    """The files that kubectl would read: those of KUBECONFIG that exist, or the one in the home directory."""
    variables = os.environ if environment is None else environment
    if listed := variables.get("KUBECONFIG"):
        paths = [Path(text) for text in listed.split(os.pathsep) if text]
    else:
        paths = [Path(variables.get("HOME", "~")).expanduser() / ".kube" / "config"]
    return [path for path in paths if path.exists()]
