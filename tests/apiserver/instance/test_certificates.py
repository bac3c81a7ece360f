"""Certificates that an embedded cluster issues: to nodes, to whom they are recognised as, and to nobody who must not have them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drayman.api.certificates import APPROVED, DENIED, FAILED, CertificateSigningRequest
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.control_plane import ControlPlane
from drayman.apiserver.instance.node_access import node_kubeconfig
from drayman.apiserver.protocol.access import ANONYMOUS
from drayman.apiserver.protocol.environment import Clock
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.protocol.exchange import PeerCertificate, Request
from drayman.apiserver.security.client_certificates import CertificateAuthenticator
from drayman.cluster import HttpClient, Informers, json_patch, merge_patch
from drayman.cluster.errors import ForbiddenError, NotFoundError
from drayman.cluster.kube.credentials import ClientCertificate, Credential, StaticCredentials
from drayman.cluster.resources import NODES, SIGNING_REQUESTS, JsonObject, generic
from drayman.controllers.certificates.cleaning import CertificateCleaner
from drayman.controllers.running import start_controllers
from drayman.workloads.certificates.signers import CLIENT, NODE_CLIENT, SERVING
from patience import PATIENCE_S

ADDRESS = "192.0.2.1"
SERVES = ["digital signature", "server auth"]
CALLS = ["digital signature", "client auth"]
VALUES = SIGNING_REQUESTS.as_values()
REVIEWS = generic(
    "authentication.k8s.io/v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
BINDINGS = generic(
    "rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)


@dataclass(frozen=True)
class Realm:
    admin: HttpClient
    node: HttpClient
    """The agent of node-1."""
    folder: Folder

    async def until(
        self, name: str, holds: Callable[[CertificateSigningRequest], object]
    ) -> CertificateSigningRequest:
        async with asyncio.timeout(PATIENCE_S):
            while not holds(found := await self.admin.get(SIGNING_REQUESTS, name)):
                await asyncio.sleep(0.01)
        return found

    async def approve(self, name: str) -> None:
        condition = {"type": APPROVED, "status": "True", "reason": "Tested"}
        patch = json_patch([{"op": "add", "path": "/status", "value": {"conditions": [condition]}}])
        await self.admin.patch(VALUES, name, patch, subresource="approval")


@asynccontextmanager
async def realm(folder: Path) -> AsyncIterator[Realm]:
    """A cluster with controllers, in which node-1 has said where it is."""
    own = Folder(folder / "cluster")
    instance = await start(Options(folder=own, control_plane=ControlPlane(scheduler=None)))
    config = folder / "node.conf"
    config.write_bytes(node_kubeconfig(own, instance.url, "node-1", datetime.now(UTC)))
    try:
        async with (
            HttpClient.from_environment(instance.kubeconfig) as admin,
            HttpClient.from_environment(config) as node,
        ):
            await node.create(NODES.as_values(), {"metadata": {"name": "node-1"}})
            status = {"addresses": [{"type": "InternalIP", "address": ADDRESS}]}
            await node.patch(
                NODES.as_values(), "node-1", merge_patch({"status": status}), subresource="status"
            )
            yield Realm(admin, node, own)
    finally:
        await instance.stop()


@dataclass(frozen=True)
class Asking:
    """What is asked for."""

    name: str = "system:node:node-1"
    organizations: tuple[str, ...] = ("system:nodes",)
    alternatives: tuple[x509.GeneralName, ...] = (x509.IPAddress(ip_address(ADDRESS)),)
    extensions: tuple[x509.ExtensionType, ...] = ()
    usages: Sequence[str] = field(default_factory=lambda: SERVES)
    signer: str = SERVING
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def pem(self) -> bytes:
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, self.name)]
        subject += [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in self.organizations
        ]
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
        extensions = list(self.extensions)
        if self.alternatives:
            extensions.append(x509.SubjectAlternativeName(self.alternatives))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def value(self, name: str, **spec: Any) -> JsonObject:
        spec = {
            "request": base64.b64encode(self.pem()).decode(),
            "signerName": self.signer,
            "usages": list(self.usages),
            **spec,
        }
        return {"metadata": {"name": name}, "spec": spec}


def issued(found: CertificateSigningRequest) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(found.status.certificate))


OTHER = x509.IPAddress(ip_address("192.0.2.2"))
ATTACKS = {
    "a DNS name": (Asking(alternatives=(x509.DNSName("kubernetes"),)), "does not have the address"),
    "the address of another": (
        Asking(alternatives=(OTHER,)),
        "does not have the address 192.0.2.2",
    ),
    "to call as well": (Asking(usages=[*SERVES, "client auth"]), "must not contain client auth"),
    "to be an authority": (
        Asking(extensions=(x509.BasicConstraints(ca=True, path_length=None),)),
        "must not ask for basicConstraints",
    ),
    "to be an administrator": (Asking(organizations=("system:masters",)), "must be system:nodes"),
}


async def test_a_node_is_denied_what_is_not_its_own(tmp_path: Path) -> None:
    """Each attempt ends with the condition Denied, which says why, and without a certificate."""
    async with realm(tmp_path) as here:
        for number, (asking, why) in enumerate(ATTACKS.values()):
            name = f"r{number}"
            await here.node.create(VALUES, asking.value(name))
            found = await here.until(name, lambda request: request.status.conditions)
            (condition,) = found.status.conditions
            assert (condition.type_, condition.reason) == (DENIED, "AutoDenied")
            assert why in condition.message
            assert not found.status.certificate


@pytest.mark.parametrize("signer", [SERVING, NODE_CLIENT])
async def test_a_node_asks_in_its_own_name(signer: str, tmp_path: Path) -> None:
    """A request in the name of another node is refused when it is created."""
    asking = Asking("system:node:node-2", signer=signer)
    async with realm(tmp_path) as here:
        with pytest.raises(ForbiddenError, match="a node CSR with CN=system:node:node-1"):
            await here.node.create(VALUES, asking.value("r"))


async def test_a_node_cannot_decide_or_sign(tmp_path: Path) -> None:
    """It creates and reads requests. Who sent one is not for it to say."""
    async with realm(tmp_path) as here:
        asking = Asking(name="jane", organizations=(), signer=CLIENT, usages=CALLS)
        value = asking.value("r", username="kubernetes-admin", groups=["system:masters"])
        made = await here.node.create(VALUES, value)
        assert made["spec"]["username"] == "system:node:node-1"
        condition = {"type": APPROVED, "status": "True", "reason": "Mine"}
        for part in ("approval", "status"):
            patch = merge_patch({"status": {"conditions": [condition]}})
            with pytest.raises(ForbiddenError):
                await here.node.patch(VALUES, "r", patch, subresource=part)
        with pytest.raises(ForbiddenError):
            await here.node.delete(VALUES, "r")


async def test_a_certificate_to_serve_with_is_believed_by_the_api_server_alone(
    tmp_path: Path,
) -> None:
    """It has the node's name and address, is no authority, and is not signed by the one that is in kubeconfigs."""
    async with realm(tmp_path) as here:
        asking = Asking()
        await here.node.create(VALUES, asking.value("r", expirationSeconds=3600))
        found = await here.until("r", lambda request: request.status.certificate)
        assert found.status.condition(APPROVED) is not None
        certificate = issued(found)
        assert certificate.public_key() == asking.key.public_key()
        extensions = certificate.extensions
        assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert list(names) == list(asking.alternatives)
        lasts = certificate.not_valid_after_utc - certificate.not_valid_before_utc
        assert timedelta(hours=1) <= lasts < timedelta(hours=2)
        folder = here.folder.certificates
        nodes, everybody = (
            x509.load_pem_x509_certificate((folder / name).read_bytes())
            for name in ("nodes-ca.crt", "ca.crt")
        )
        certificate.verify_directly_issued_by(nodes)
        with pytest.raises((ValueError, InvalidSignature)):
            certificate.verify_directly_issued_by(everybody)


async def test_without_the_right_a_request_of_a_node_waits(tmp_path: Path) -> None:
    """An administrator who takes the right away decides about what nodes serve with."""
    async with realm(tmp_path) as here:
        right = "system:certificates.k8s.io:certificatesigningrequests:selfnodeserver"
        await here.admin.delete(BINDINGS, right)
        await here.node.create(VALUES, Asking().value("waits"))
        later = Asking(alternatives=(), signer=NODE_CLIENT, usages=CALLS)
        await here.node.create(VALUES, later.value("later"))
        # One after the other: when the second is decided about, the first has been looked at.
        await here.until("later", lambda request: request.status.certificate)
        found = await here.admin.get(SIGNING_REQUESTS, "waits")
        assert not found.status.conditions
        await here.approve("waits")
        await here.until("waits", lambda request: request.status.certificate)


async def test_what_was_approved_for_a_signer_that_refuses_it_fails(tmp_path: Path) -> None:
    """An administrator may approve anything; the condition Failed says why there is no certificate."""
    async with realm(tmp_path) as here:
        await here.admin.create(VALUES, Asking(organizations=("others",)).value("r"))
        await here.approve("r")
        found = await here.until("r", lambda request: request.status.condition(FAILED))
        condition = found.status.condition(FAILED)
        assert condition is not None
        assert condition.reason == "SignerValidationFailure"
        assert "must be system:nodes" in condition.message
        assert not found.status.certificate


@pytest.mark.parametrize(
    ("asking", "groups"),
    [
        (Asking("jane", ("team",), (), signer=CLIENT, usages=CALLS), ["team"]),
        (Asking(alternatives=(), signer=NODE_CLIENT, usages=CALLS), ["system:nodes"]),
    ],
    ids=["user", "node"],
)
async def test_who_has_a_certificate_is_known_by_it(
    asking: Asking, groups: list[str], tmp_path: Path
) -> None:
    """The server takes the user from its common name and the groups from its organizations, and gives them the rights that they have."""
    async with realm(tmp_path) as here:
        await here.admin.create(VALUES, asking.value("r"))
        await here.approve("r")
        found = await here.until("r", lambda request: request.status.certificate)
        key = asking.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        shown = ClientCertificate(base64.b64decode(found.status.certificate), key)
        connection = replace(
            here.admin.connection, credentials=StaticCredentials(Credential(certificate=shown))
        )
        async with HttpClient(connection) as client:
            review = await client.create(REVIEWS, {})
            assert review["status"]["userInfo"] == {
                "username": asking.name,
                "groups": [*groups, "system:authenticated"],
            }
            with pytest.raises(ForbiddenError):
                await client.delete(NODES, "node-2")


class _Everybody:
    async def authenticate(self, _request: Request) -> Any:
        return ANONYMOUS


class _At(Clock):
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expires_in", "name", "want"),
    [(60, "jane", "jane"), (60, "", ANONYMOUS.name), (0, "jane", None)],
    ids=["shown", "nameless", "expired on an open connection"],
)
async def test_a_certificate_counts_until_it_expires(
    expires_in: float, name: str, want: str | None
) -> None:
    """Also on a connection that was made before; one without a name says nothing."""
    expires = _At().now().timestamp() + expires_in
    request = Request("GET", "/", certificate=PeerCertificate(name, ("team",), expires))
    authenticator = CertificateAuthenticator(_Everybody(), _At())
    if want is None:
        with pytest.raises(StatusError, match="Unauthorized"):
            await authenticator.authenticate(request)
    else:
        assert (await authenticator.authenticate(request)).name == want


async def test_requests_that_are_over_are_removed(tmp_path: Path) -> None:
    """Those that were decided after an hour, others after a day."""
    async with realm(tmp_path) as here:
        await here.node.create(VALUES, Asking().value("decided"))
        await here.until("decided", lambda request: request.status.certificate)
        waiting = Asking("jane", (), (), signer=CLIENT, usages=CALLS)
        await here.admin.create(VALUES, waiting.value("waits"))
        now = datetime.now(UTC).timestamp()
        for hours, left in ((2, {"waits"}), (25, set())):
            informers = Informers(here.admin)

            def later(client: Any, known: Informers, hours: int = hours) -> CertificateCleaner:
                return CertificateCleaner(client, known, clock=lambda: now + hours * 3600)

            cleaner = await start_controllers(here.admin, informers, (later,))
            async with asyncio.timeout(PATIENCE_S):
                while await _names(here) != left:
                    await asyncio.sleep(0.01)
            await cleaner.stop()
            await informers.stop()
        with pytest.raises(NotFoundError):
            await here.admin.get(SIGNING_REQUESTS, "decided")


async def _names(here: Realm) -> set[str]:
    found = await here.admin.list(SIGNING_REQUESTS)
    return {request.metadata.name for request in found.items}
