"""Who approves and signs certificates."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from security.realm import Realm, realm, rule

GROUP = "certificates.k8s.io"
REQUESTS = f"/apis/{GROUP}/v1/certificatesigningrequests"
SIGNER = "example.com/clients"


def request() -> dict[str, Any]:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    pem = base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": pem, "signerName": SIGNER, "usages": ["client auth"]}
    return {"metadata": {"name": "r"}, "spec": spec}


async def decided(here: Realm, user: str, part: str, kind: str) -> tuple[int, str]:
    """The answer to a user who adds a condition through a part of the request."""
    found = (await here.send("GET", f"{REQUESTS}/r")).body
    condition = {"type": kind, "status": "True", "reason": "Because"}
    found.setdefault("status", {}).setdefault("conditions", []).append(condition)
    reply = await here.by(user, "PUT", f"{REQUESTS}/r/{part}", found)
    return reply.status, "" if reply.status == 200 else reply.message


WRITES = rule(
    "certificatesigningrequests/approval certificatesigningrequests/status", "update", GROUP
)


@pytest.mark.parametrize(
    ("part", "kind", "verb"), [("approval", "Approved", "approve"), ("status", "Failed", "sign")]
)
@pytest.mark.parametrize("name", [SIGNER, "example.com/*", "example.com/others", ""])
async def test_a_decision_needs_the_right_to_its_signer(
    part: str, kind: str, verb: str, name: str
) -> None:
    """To that signer, or to all of its domain; the right to write the part of the request is not enough."""
    may = [rule("signers", verb, GROUP, names=name)] if name else []
    async with realm() as here:
        await here.make(REQUESTS, request())
        await here.let("eve", WRITES, *may, everywhere=True)
        status, message = await decided(here, "eve", part, kind)
        if name in (SIGNER, "example.com/*"):
            assert status == 200, message
        else:
            why = f'user not permitted to {verb} requests with signerName "{SIGNER}"'
            about = f'certificatesigningrequests.{GROUP} "r" is forbidden'
            assert (status, message) == (403, f"{about}: {why}")
