"""How an instance and its clients recognise each other: certificates, tokens and rights, from the files in its folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from drayman.apiserver.instance.errors import InstanceError
from drayman.apiserver.instance.folder import Folder, reason
from drayman.apiserver.security.audit import AuditLog
from drayman.apiserver.security.authentication import TokenAuthenticator
from drayman.apiserver.security.authority import AuthorityError
from drayman.apiserver.security.bindings import Bindings
from drayman.apiserver.security.client_certificates import CertificateAuthenticator
from drayman.apiserver.security.escalation import guard_roles
from drayman.apiserver.security.impersonation import Impersonation
from drayman.apiserver.security.node_pods import NodePods
from drayman.apiserver.security.node_restriction import NodeRestriction
from drayman.apiserver.security.nodes import NodeAuthorizer
from drayman.apiserver.security.private_files import write_private
from drayman.apiserver.security.rbac import RbacAuthorizer
from drayman.apiserver.security.reviews import Reviews
from drayman.apiserver.security.serving_trust import ServingTrust
from drayman.apiserver.security.signers import SignerPermissions
from drayman.apiserver.security.token_requests import TokenRequests
from drayman.apiserver.security.tokens import TokenIssuer, new_secret, new_signing_key
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.embedded import Store

_OWN_NAMES: Final = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc")


NODE_TOKEN_LIFETIME: Final = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Access:
    """How clients recognise the server, and how it recognises its administrator."""

    trust: ServingTrust
    token: str


def arrange_access(
    server: ApiServer, folder: Folder, host: str, audit_log: Path | None, end: AsyncExitStack
) -> Access:
    """Certificates, tokens, rights and the audit log, from the files in the folder. Raises InstanceError."""
    try:
        trust = ServingTrust(folder.certificates, (host, *_OWN_NAMES), server.core.clock)
        token = _admin_token(folder.token)
        secure(server, token, _issuer(folder.signing_key))
        if audit_log is not None:
            audit = AuditLog(audit_log, server.metrics.audit_errors)
            end.callback(audit.close)
            server.observers.append(audit)
            server.health.readiness = {
                **server.health.readiness,
                "audit-log": lambda: audit.problem,
            }
    except AuthorityError as error:
        raise InstanceError(str(error)) from error
    except OSError as error:
        raise InstanceError(f"{error.filename}: {reason(error)}") from error
    return Access(trust, token)


def secure(server: ApiServer, admin_token: str, issuer: TokenIssuer) -> None:
    """Set up authentication, RBAC and the review resources."""
    core = server.core
    assert isinstance(core.store, Store), "rights follow a store, not a batch"
    bindings = Bindings(core.objects)
    core.store.follow(bindings)
    pods = NodePods(core.objects)
    core.store.follow(pods)
    authorizer = NodeAuthorizer(pods, core.objects, RbacAuthorizer(core.objects, bindings))
    authenticator = TokenAuthenticator(admin_token, issuer, core.objects, core.clock)
    server.authenticator = CertificateAuthenticator(authenticator, core.clock)
    core.authorizer = authorizer
    server.impersonation = Impersonation(authorizer)
    guard_roles(core.resources)
    core.admission.plugins.append(SignerPermissions(authorizer))
    core.admission.plugins.append(NodeRestriction(pods))
    for resource in Reviews(authenticator, authorizer).resources():
        core.resources.add(resource)
    accounts = core.resources.named("", "serviceaccounts")
    if accounts is not None:
        others = tuple(s for s in accounts.subresources if s.name != "token")
        tokens = TokenRequests(issuer).subresource()
        core.resources.add(replace(accounts, subresources=(*others, tokens)))


def node_token(folder: Folder, node: str, now: datetime) -> str:
    """A token for the agent of a node, from the key in a folder. Raises InstanceError and OSError."""
    return _issuer(folder.signing_key).issue_to_node(node, now, NODE_TOKEN_LIFETIME)


def _admin_token(path: Path) -> str:
    """The administrator's token, made once and kept. Raises InstanceError."""
    try:
        token = _kept(path, lambda: new_secret().encode()).decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    # An empty token would admit callers that send none.
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
