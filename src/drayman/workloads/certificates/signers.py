"""The signers of Kubernetes whose certificates an API server and its nodes recognise: what each signs, and what of it nodes get unasked.

A signer refuses what its certificates must not say, whoever approved it. Approval is about who asks: a node may have certificates
in its own name and for its own addresses. What others ask for is left to people.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from drayman.api.certificates import CertificateSigningRequestSpec
from drayman.api.node_identity import NODE_USER, NODES, node_of
from drayman.workloads.certificates.model import Asked

SERVING: Final = "kubernetes.io/kubelet-serving"
NODE_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
CLIENT: Final = "kubernetes.io/kube-apiserver-client"
SIGNERS: Final = (CLIENT, NODE_CLIENT, SERVING)

DIGITAL_SIGNATURE: Final = "digital signature"
KEY_ENCIPHERMENT: Final = "key encipherment"
SERVER_AUTH: Final = "server auth"
CLIENT_AUTH: Final = "client auth"


def signing_problem(signer: str, asked: Asked, usages: Collection[str]) -> str:
    """Why a signer does not sign a request, whoever approved it; empty if it does."""
    if signer == CLIENT:
        return _usage_problem(usages, CLIENT_AUTH, {CLIENT_AUTH})
    use = SERVER_AUTH if signer == SERVING else CLIENT_AUTH
    if asked.organizations != (NODES,):
        return f"the organization of the subject must be {NODES} and nothing else"
    if not asked.common_name.startswith(NODE_USER) or asked.common_name == NODE_USER:
        return f"the common name of the subject must begin with {NODE_USER}, and name a node"
    if problem := _usage_problem(usages, use, {DIGITAL_SIGNATURE, use}):
        return problem
    if signer == NODE_CLIENT:
        return "alternative names of the subject are not allowed" if asked.has_alternatives else ""
    if asked.other_names:
        sorts = ", ".join(dict.fromkeys(asked.other_names))
        return f"alternative names must be DNS names and IP addresses, not {sorts}"
    if not asked.dns_names and not asked.addresses:
        return "there must be a DNS name or an IP address among the alternative names"
    return ""


def _usage_problem(usages: Collection[str], use: str, needed: set[str]) -> str:
    allowed = {DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, use}
    more = [usage for usage in usages if usage not in allowed]
    if more:
        return f"usages must not contain {', '.join(more)}"
    missing = sorted(needed - set(usages))
    return f"usages must contain {', '.join(missing)}" if missing else ""


class Approval(Enum):
    """What becomes of a request without anybody's doing."""

    APPROVE = auto()
    DENY = auto()
    LEAVE = auto()
    """It is for people to decide."""


class Decision(Struct, frozen=True):
    approval: Approval
    message: str = ""


LEAVE: Final = Decision(Approval.LEAVE)
_SELF: Final = {SERVING: "selfnodeserver", NODE_CLIENT: "selfnodeclient"}


def right_needed(spec: CertificateSigningRequestSpec) -> str:
    """The subresource that a node must be allowed to create for a request to be decided here; empty if it is for people to decide."""
    return "" if requester(spec) is None else _SELF.get(spec.signer_name, "")


def requester(spec: CertificateSigningRequestSpec) -> str | None:
    """The node that asks, if one does."""
    return node_of(spec.username, spec.groups)


def decide(
    spec: CertificateSigningRequestSpec, asked: Asked, addresses: Collection[str]
) -> Decision:
    """Whether a node gets what it asks for. `addresses` are those of its Node object."""
    if not right_needed(spec):
        return LEAVE
    problem = _excess(spec, asked, addresses)
    if problem:
        return Decision(Approval.DENY, problem)
    return Decision(Approval.APPROVE, "the node asks for its own name and addresses")


def _excess(spec: CertificateSigningRequestSpec, asked: Asked, addresses: Collection[str]) -> str:
    """What a node asks for that is not its own."""
    if problem := signing_problem(spec.signer_name, asked, spec.usages):
        return problem
    if asked.common_name != spec.username:
        return f"{spec.username} must not ask for a certificate of {asked.common_name}"
    if asked.subject_more:
        return f"the subject must not have {', '.join(asked.subject_more)}"
    if asked.extensions:
        return f"the request must not ask for {', '.join(asked.extensions)}"
    own = {_canonical(address) for address in addresses}
    foreign = [n for n in (*asked.dns_names, *asked.addresses) if _canonical(n) not in own]
    if foreign:
        return f"node {requester(spec)} does not have the address {', '.join(foreign)}"
    return ""


def _canonical(address: str) -> str:
    try:
        return str(ip_address(address))
    except ValueError:
        return address.lower()
