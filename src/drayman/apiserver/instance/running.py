"""Starting and stopping an instance: folder, store, certificates, rights, first objects, then the socket."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from drayman.apiserver.assembly import make_server
from drayman.apiserver.environment import timestamp
from drayman.apiserver.extensions import install_builtin_definitions
from drayman.apiserver.http import Listener, RunningServer
from drayman.apiserver.http import start as listen
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.instance.folder import Folder, FolderError, Record, reason
from drayman.apiserver.instance.kubeconfig import kubeconfig
from drayman.apiserver.lifecycle import Lifecycle
from drayman.apiserver.security.audit import AuditLog
from drayman.apiserver.security.authentication import TokenAuthenticator
from drayman.apiserver.security.authority import AuthorityError, ServingFiles, ensure_certificates
from drayman.apiserver.security.private_files import write_private
from drayman.apiserver.security.rbac import RbacAuthorizer
from drayman.apiserver.security.reviews import Reviews
from drayman.apiserver.security.token_requests import TokenRequests
from drayman.apiserver.security.tokens import TokenIssuer, new_secret, new_signing_key
from drayman.apiserver.server import ApiServer
from drayman.cluster.embedded import Store, StoreError

LOOPBACK: Final = "127.0.0.1"
_OWN_NAMES: Final = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc")


class InstanceError(Exception):
    """The instance cannot be started; the message is one sentence for the person who runs it."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to run an instance."""

    folder: Folder
    durable: bool = True
    host: str = LOOPBACK
    port: int = 0
    kubeconfig: Path | None = None
    """Where to write the kubeconfig; by default into the folder."""
    audit_log: Path | None = None
    controllers: bool = True
    """Whether garbage collection and the end of namespaces run, or the API alone."""

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(slots=True)
class Instance:
    """A running API server."""

    options: Options
    store: Store
    server: ApiServer
    http: RunningServer
    kubeconfig: Path
    audit: AuditLog | None
    lifecycle: Lifecycle | None = None

    @property
    def url(self) -> str:
        return self.http.url

    def start_controllers(self) -> None:
        self.lifecycle = Lifecycle(self.server.core)
        self.lifecycle.start()

    async def stop(self) -> None:
        if self.lifecycle is not None:
            await self.lifecycle.stop()
        await self.http.stop()
        self.store.close()
        if self.audit is not None:
            self.audit.close()
        self.options.folder.retract()


async def start(options: Options) -> Instance:
    """Start serving. Raises InstanceError."""
    folder = options.folder
    try:
        folder.prepare()
        store = Store.open(folder.store if options.durable else None)
    except (FolderError, StoreError) as error:
        raise InstanceError(str(error)) from error
    try:
        return await _start_on(store, options)
    except BaseException:
        store.close()
        raise


async def _start_on(store: Store, options: Options) -> Instance:
    folder = options.folder
    server = make_server(store)
    try:
        now = server.core.clock.now()
        files = ensure_certificates(folder.certificates, (options.host, *_OWN_NAMES), now)
        token = _admin_token(folder.token)
        _secure(server, token, _issuer(folder.signing_key))
        audit = AuditLog.open(options.audit_log) if options.audit_log is not None else None
    except AuthorityError as error:
        raise InstanceError(str(error)) from error
    except OSError as error:
        raise InstanceError(f"{error.filename}: {reason(error)}") from error
    if audit is not None:
        server.observers.append(audit)
    is_new = store.revision == 0
    await create_first_objects(server.core)
    await install_builtin_definitions(server.core)
    if is_new:
        # As with any other server nobody has seen the first versions, and a watch from one of them has to start over.
        store.compact(store.revision)
    running = await _listen(server, options, files)
    path = options.kubeconfig or folder.kubeconfig
    instance = Instance(options, store, server, running, path, audit)
    try:
        write_private(path, kubeconfig(running.url, files.authority_pem, token))
        folder.announce(
            Record(os.getpid(), running.url, str(path), timestamp(now), options.durable)
        )
    except OSError as error:
        await running.stop()
        raise InstanceError(f"cannot write {path}: {reason(error)}") from error
    if options.controllers:
        instance.start_controllers()
    return instance


def _admin_token(path: Path) -> str:
    """The administrator's token, made once and kept. Raises InstanceError."""
    try:
        token = _kept(path, lambda: new_secret().encode()).decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    # An empty token would let in whoever sends none.
    if not token or not token.isprintable() or " " in token:
        raise InstanceError(f"{path} holds no token; remove it to have a new one")
    return token


def _issuer(path: Path) -> TokenIssuer:
    """Signs with a key that is made once and kept. Raises InstanceError."""
    try:
        return TokenIssuer(_kept(path, new_signing_key))
    except (ValueError, TypeError) as error:
        raise InstanceError(f"{path} is no signing key; remove it to have a new one") from error


def _kept(path: Path, make: Callable[[], bytes]) -> bytes:
    if not path.exists():
        write_private(path, make())
    return path.read_bytes()


def _secure(server: ApiServer, admin_token: str, issuer: TokenIssuer) -> None:
    """Put authentication, RBAC and the resources that ask about them in place."""
    core = server.core
    authorizer = RbacAuthorizer(core.objects)
    authenticator = TokenAuthenticator(admin_token, issuer, core.objects, authorizer, core.clock)
    server.authenticator, server.authorizer = authenticator, authorizer
    for resource in Reviews(authenticator, authorizer).resources():
        core.resources.add(resource)
    accounts = core.resources.named("", "serviceaccounts")
    if accounts is not None:
        others = tuple(s for s in accounts.subresources if s.name != "token")
        tokens = TokenRequests(issuer).subresource()
        core.resources.add(replace(accounts, subresources=(*others, tokens)))


async def _listen(server: ApiServer, options: Options, files: ServingFiles) -> RunningServer:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.load_cert_chain(files.certificate, files.key)
    try:
        return await listen(server, Listener(options.host, options.port, tls))
    except OSError as error:
        # The event loop wraps what the system says into a longer sentence of its own; the number stays.
        number = None if isinstance(error, socket.gaierror) else error.errno
        why = reason(error) if number is None else os.strerror(number).lower()
        raise InstanceError(f"cannot listen on {options.host}:{options.port}: {why}") from error
