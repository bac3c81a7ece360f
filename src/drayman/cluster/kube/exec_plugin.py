"""Credentials from an exec plugin: a program that prints an ExecCredential.

Cloud providers and single sign-on ship such programs (`aws eks get-token`, `kubelogin`). One is run when its last credential has
expired or the server refused it, by one request at a time while others wait for the outcome, and its answer serves until it
expires.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

import msgspec

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.api.struct import ApiStruct, Json
from drayman.cluster.errors import CredentialsError
from drayman.cluster.kube.credentials import ClientCertificate, Credential, bearer

EXEC_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)
EXPIRY_MARGIN: Final = timedelta(seconds=10)
"""How long before it expires a credential is renewed, so that it does not expire during a request."""
TIMEOUT_SECONDS: Final = 120.0
"""Long enough for a person to log in with a browser."""


class ExecStatus(ApiStruct):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class ExecCredential(ApiStruct):
    api_version: str = ""
    kind: str = ""
    status: ExecStatus | None = None


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """How the program is run."""

    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    """Where a relative command is looked up: the folder of the kubeconfig."""
    install_hint: str = ""
    interactive: Literal["Never", "IfAvailable", "Always"] = "IfAvailable"
    cluster: Json = None
    """The cluster as the plugin is to see it, where it asks for that."""


@dataclass(slots=True)
class ExecCredentials:
    """Credentials that an exec plugin gives."""

    plugin: ExecPlugin
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _credential: Credential | None = None
    _expires: datetime | None = None
    _running: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def current(self) -> Credential:
        async with self._running:
            if self._credential is None or self._is_expired():
                self._credential, self._expires = _accept(self.plugin, await _run(self.plugin))
            return self._credential

    def refused(self, credential: Credential) -> bool:
        if self._credential is credential:
            self._credential = None
        return True

    def _is_expired(self) -> bool:
        return self._expires is not None and self.clock() >= self._expires - EXPIRY_MARGIN


async def _run(plugin: ExecPlugin) -> bytes:
    """What the plugin prints."""
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive == "Always" and not has_terminal:
        raise CredentialsError(
            f"exec plugin {plugin.command!r} needs a terminal, and there is none"
        )
    interactive = plugin.interactive != "Never" and has_terminal
    try:
        process = await asyncio.create_subprocess_exec(
            _program(plugin),
            *plugin.arguments,
            env={
                **os.environ,
                **plugin.environment,
                "KUBERNETES_EXEC_INFO": _info(plugin, interactive),
            },
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
        raise CredentialsError(f"exec plugin {plugin.command!r}: {error}{hint}") from error
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            output, complaint = await process.communicate()
    except TimeoutError as error:
        raise CredentialsError(
            f"exec plugin {plugin.command!r} gave no answer in {TIMEOUT_SECONDS:.0f} s"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        text = (complaint or b"").decode(errors="replace").strip()
        raise CredentialsError(
            f"exec plugin {plugin.command!r} ended with status {process.returncode}: {text}"
        )
    return output


def _program(plugin: ExecPlugin) -> str:
    """A bare name is found by PATH, a relative path from the kubeconfig's folder."""
    if os.sep in plugin.command and plugin.folder is not None:
        return str(plugin.folder / plugin.command)
    return plugin.command


def _info(plugin: ExecPlugin, interactive: bool) -> str:
    spec: dict[str, Json] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    value = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return codec.encode_json(value).decode()


def _accept(plugin: ExecPlugin, output: bytes) -> tuple[Credential, datetime | None]:
    """The credential in the plugin's output, and when it expires."""
    where = f"exec plugin {plugin.command!r}"
    try:
        answer = codec.decode(ExecCredential, output)
    except DecodeError as error:
        raise CredentialsError(f"{where} printed no ExecCredential: {error}") from error
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise CredentialsError(
            f"{where} was asked for {plugin.api_version} ExecCredential"
            f" and printed {answer.api_version} {answer.kind}"
        )
    status = answer.status or ExecStatus()
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise CredentialsError(f"{where} printed a certificate without its key, or a key alone")
    if not (status.token or status.client_certificate_data):
        raise CredentialsError(f"{where} printed neither a token nor a certificate")
    certificate = None
    if status.client_certificate_data:
        certificate = ClientCertificate(
            status.client_certificate_data.encode(), status.client_key_data.encode()
        )
    authorization = bearer(status.token) if status.token else ""
    return Credential(authorization, certificate), _expiry(where, status.expiration_timestamp)


def _expiry(where: str, text: str) -> datetime | None:
    if not text:
        return None
    try:
        return msgspec.convert(text, datetime).astimezone(UTC)
    except (msgspec.ValidationError, ValueError) as error:
        raise CredentialsError(f"{where}: expirationTimestamp {text!r} is not a time") from error
