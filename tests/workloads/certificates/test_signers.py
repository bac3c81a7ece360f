"""What nodes get without anybody's doing, and what signers sign for nobody."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drayman.api.certificates import CertificateSigningRequestSpec
from drayman.workloads.certificates.asking import RequestError, asked
from drayman.workloads.certificates.model import Asked
from drayman.workloads.certificates.signers import (
    CLIENT,
    NODE_CLIENT,
    SERVING,
    Approval,
    decide,
    right_needed,
    signing_problem,
)

NODE = "system:node:node-1"
ADDRESS = "192.0.2.1"
SERVES = ("digital signature", "server auth")
CALLS = ("digital signature", "client auth")
OWN = Asked(NODE, ("system:nodes",), addresses=(ADDRESS,), has_alternatives=True)
CALLER = Asked(NODE, ("system:nodes",))


def spec(**parts: Any) -> CertificateSigningRequestSpec:
    return CertificateSigningRequestSpec(
        **{
            "signer_name": SERVING,
            "usages": SERVES,
            "username": NODE,
            "groups": ("system:nodes", "system:authenticated"),
            **parts,
        }
    )


@dataclass(frozen=True)
class Case:
    want: Approval
    why: str = ""
    asked: Asked = OWN
    spec: dict[str, Any] = field(default_factory=dict)


def own(**parts: Any) -> Asked:
    return Asked(**{**{name: getattr(OWN, name) for name in OWN.__struct_fields__}, **parts})


AS_CLIENT: dict[str, Any] = {"signer_name": NODE_CLIENT, "usages": CALLS}
CASES = {
    "its own name and address": Case(Approval.APPROVE),
    "with an RSA key": Case(Approval.APPROVE, spec={"usages": (*SERVES, "key encipherment")}),
    "several addresses of its own": Case(
        Approval.APPROVE, asked=own(addresses=(ADDRESS, "2001:db8:0::1"), dns_names=("N1.example",))
    ),
    "another client certificate": Case(Approval.APPROVE, asked=CALLER, spec=AS_CLIENT),
    "the name of another node": Case(
        Approval.DENY,
        "system:node:node-1 must not ask for a certificate of system:node:node-2",
        own(common_name="system:node:node-2"),
    ),
    "the name of a user": Case(Approval.DENY, "must begin with", own(common_name="admin")),
    "no name": Case(Approval.DENY, "and name a node", own(common_name="system:node:")),
    "a DNS name that is not its own": Case(
        Approval.DENY,
        "node node-1 does not have the address kubernetes.default.svc",
        own(dns_names=("kubernetes.default.svc",)),
    ),
    "an address that is not its own": Case(
        Approval.DENY, "does not have the address 192.0.2.9", own(addresses=(ADDRESS, "192.0.2.9"))
    ),
    "no address": Case(Approval.DENY, "there must be", own(addresses=())),
    "another sort of name": Case(
        Approval.DENY, "not RFC822Name", own(other_names=("RFC822Name",))
    ),
    "to call with it, too": Case(
        Approval.DENY,
        "usages must not contain client auth",
        spec={"usages": (*SERVES, "client auth")},
    ),
    "to sign certificates": Case(
        Approval.DENY, "must not contain cert sign", spec={"usages": (*SERVES, "cert sign")}
    ),
    "not even to serve": Case(
        Approval.DENY, "must contain server auth", spec={"usages": ("digital signature",)}
    ),
    "to be an authority": Case(
        Approval.DENY, "must not ask for basicConstraints", own(extensions=("basicConstraints",))
    ),
    "another organization": Case(
        Approval.DENY, "must be system:nodes and nothing else", own(organizations=("system:masters",))
    ),
    "one more organization": Case(
        Approval.DENY,
        "must be system:nodes and nothing else",
        own(organizations=("system:nodes", "system:masters")),
    ),
    "more of a subject": Case(
        Approval.DENY, "must not have serialNumber", own(subject_more=("serialNumber",))
    ),
    "names in a client certificate": Case(
        Approval.DENY, "are not allowed", own(), spec=AS_CLIENT
    ),
    "a client certificate of another node": Case(
        Approval.DENY,
        "must not ask for",
        Asked("system:node:node-2", ("system:nodes",)),
        AS_CLIENT,
    ),
    "somebody else asks for a node": Case(
        Approval.LEAVE, spec={"username": "jane", "groups": ("system:masters",)}
    ),
    "somebody is only called like a node": Case(Approval.LEAVE, spec={"groups": ("others",)}),
    "a node asks for a user": Case(
        Approval.LEAVE, spec={"signer_name": CLIENT, "usages": CALLS}
    ),
    "another signer": Case(Approval.LEAVE, spec={"signer_name": "example.com/nodes"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_node_gets_what_is_its_own(name: str) -> None:
    """It is denied everything else, with the reason. What others ask for is left to people."""
    case = CASES[name]
    found = decide(spec(**case.spec), case.asked, (ADDRESS, "2001:db8::1", "n1.example"))
    assert found.approval is case.want
    assert case.why in found.message


@pytest.mark.parametrize(
    ("signer", "want"),
    [(SERVING, "selfnodeserver"), (NODE_CLIENT, "selfnodeclient"), (CLIENT, "")],
)
def test_a_decision_needs_a_right_of_the_node(signer: str, want: str) -> None:
    """Of the name that Kubernetes gives it."""
    assert right_needed(spec(signer_name=signer)) == want


@pytest.mark.parametrize(
    ("usages", "problem"),
    [
        (("client auth",), ""),
        (("client auth", "key encipherment", "digital signature"), ""),
        (("digital signature",), "usages must contain client auth"),
        (("client auth", "server auth"), "usages must not contain server auth"),
    ],
)
def test_certificates_of_users_are_for_calling_only(usages: tuple[str, ...], problem: str) -> None:
    """Whatever their subject is."""
    assert signing_problem(CLIENT, Asked("jane", ("team",)), usages) == problem


def request(subject: list[x509.NameAttribute[str]], *extensions: x509.ExtensionType) -> str:
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def test_everything_that_a_request_asks_for_is_seen() -> None:
    """Parts of the subject, names of all sorts, and extensions."""
    subject = [
        x509.NameAttribute(NameOID.COMMON_NAME, NODE),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "more"),
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "unit"),
    ]
    names = x509.SubjectAlternativeName(
        [x509.DNSName("n1.example"), x509.RFC822Name("a@example"), x509.DNSName("n2.example")]
    )
    found = asked(request(subject, names, x509.BasicConstraints(ca=True, path_length=None)))
    assert found == Asked(
        NODE,
        ("system:nodes", "more"),
        subject_more=("organizationalUnitName",),
        dns_names=("n1.example", "n2.example"),
        other_names=("RFC822Name",),
        has_alternatives=True,
        extensions=("basicConstraints",),
    )


@pytest.mark.parametrize("count", [0, 2])
def test_a_request_has_one_common_name(count: int) -> None:
    """Otherwise it is not clear for whom it is."""
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, NODE)] * count
    with pytest.raises(RequestError, match=f"{count} common names"):
        asked(request(subject))


def test_what_cannot_be_read_is_an_error() -> None:
    """In words, whatever the text is."""
    for text in ("", "!", base64.b64encode(b"-----BEGIN X-----\nAA==\n-----END X-----\n").decode()):
        with pytest.raises(RequestError, match="cannot be read"):
            asked(text)
