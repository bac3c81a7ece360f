"""CertificateSigningRequests: what is refused, and who may write what of the status."""

from __future__ import annotations

import base64
import copy
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apiserver.kinds.circumstances import (
    NOW,
    created,
    make_context,
    refusals,
    resource_of,
)
from drayman.apiserver.kinds.certificates import NoMasters
from drayman.apiserver.protocol.access import ADMIN
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.served.strategy import Object, Strategy
from drayman.apiserver.verbs.admission import Admission, Admitted

RESOURCE = resource_of("certificates.k8s.io", "CertificateSigningRequest")
CLIENT = "kubernetes.io/kube-apiserver-client"


@cache
def request_text(organization: str = "team") -> str:
    """A request that its own key has signed."""
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "jane"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
        ]
    )
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


@cache
def certificate_text() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1)
    builder = builder.not_valid_before(NOW).not_valid_after(NOW.replace(year=2027))
    made = builder.sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def make(**spec: Any) -> Object:
    given = {
        "request": request_text(),
        "signerName": "example.com/team",
        "usages": ["client auth"],
        **spec,
    }
    return created(RESOURCE, {"metadata": {"name": "jane"}, "spec": given}, make_context())


def test_a_request_carries_who_sent_it() -> None:
    """Whatever it says of itself, it is from the user who created it, and undecided."""
    made = make(username="somebody", groups=["others"])
    assert made["spec"]["username"] == ADMIN.name
    assert made["spec"]["groups"] == list(ADMIN.groups)
    assert RESOURCE.strategy.validate(made, make_context()) == []
    assert "conditions" not in made.get("status", {})


def _text(words: bytes) -> str:
    return base64.b64encode(words).decode()


SIGNER, REQUEST = "spec.signerName", "spec.request"
REFUSED: dict[str, tuple[dict[str, Any], set[tuple[str, str]]]] = {
    "no request": ({"request": ""}, {(REQUEST, "Invalid")}),
    "something else": ({"request": _text(b"hello")}, {(REQUEST, "Invalid")}),
    "a certificate": ({"request": certificate_text()}, {(REQUEST, "Invalid")}),
    "broken inside": (
        {"request": _text(b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n")},
        {(REQUEST, "Invalid")},
    ),
    "no signer": ({"signerName": ""}, {(SIGNER, "Required")}),
    "a signer without a domain": ({"signerName": "team"}, {(SIGNER, "Invalid")}),
    "a domain of one part": ({"signerName": "example/team"}, {(SIGNER, "Invalid")}),
    "a signer of the past": ({"signerName": "kubernetes.io/legacy-unknown"}, {(SIGNER, "Invalid")}),
    "for nothing": ({"usages": []}, {("spec.usages", "Required")}),
    "for something unknown": ({"usages": ["cooking"]}, {("spec.usages[0]", "NotSupported")}),
    "for the same twice": ({"usages": ["any", "any"]}, {("spec.usages[1]", "Duplicate")}),
    "for a moment": ({"expirationSeconds": 60}, {("spec.expirationSeconds", "Invalid")}),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """The field and reason of every error."""
    spec, causes = REFUSED[case]
    assert refusals(RESOURCE.strategy.validate(make(**spec), make_context())) == causes


def test_nobody_becomes_a_master_by_asking() -> None:
    """A client certificate for system:masters is refused, whoever would approve it."""
    plugins = Admission([NoMasters()])
    for organization, signer, is_refused in (
        ("system:masters", CLIENT, True),
        ("team", CLIENT, False),
        ("system:masters", "example.com/team", False),
    ):
        made = make(request=request_text(organization), signerName=signer)
        write = Admitted("CREATE", RESOURCE, "", "", "jane", made, None, make_context())
        if not is_refused:
            plugins.validate(write)
            continue
        with pytest.raises(StatusError, match="system:masters group is not allowed") as refused:
            plugins.validate(write)
        assert refused.value.code == 403


def written(part: str, old: Object, **status: Any) -> tuple[Object, set[tuple[str, str]]]:
    """What comes of writing a status through a part of the object, and the errors of that."""
    found = RESOURCE.subresource(part) if part else None
    strategy: Strategy | None = RESOURCE.strategy if found is None else found.strategy
    assert strategy is not None
    new, context = copy.deepcopy(old), make_context()
    new["spec"]["signerName"] = "example.com/other"
    new["status"] = {**copy.deepcopy(old.get("status", {})), **status}
    strategy.prepare_for_update(new, old, context)
    for each in (new, old):
        each["metadata"]["resourceVersion"] = "1"
    return new, refusals(strategy.validate_update(new, old, context))


YES = {"type": "Approved", "status": "True", "reason": "Known"}
NO = {"type": "Denied", "status": "True"}


def test_each_part_of_the_status_has_its_own_way_in() -> None:
    """The object changes nothing of it, approval decides, and the status takes the certificate; nobody changes the spec."""
    asked = make()
    same, errors = written("", asked, conditions=[YES], certificate=certificate_text())
    assert (same, errors) == (asked, set())
    approved, errors = written("approval", asked, conditions=[YES], certificate=certificate_text())
    assert errors == set()
    assert "certificate" not in approved["status"]
    assert approved["spec"] == asked["spec"]
    (decided,) = approved["status"]["conditions"]
    assert decided["lastUpdateTime"] == decided["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    issued, errors = written("status", approved, certificate=certificate_text())
    assert errors == set()
    assert (issued["spec"], issued["status"]["conditions"]) == (asked["spec"], [decided])


CONDITIONS, CERTIFICATE = "status.conditions", "status.certificate"
WRITES: dict[str, tuple[str, dict[str, Any], set[tuple[str, str]]]] = {
    "the signer decides": ("status", {"conditions": [YES]}, {(CONDITIONS, "Forbidden")}),
    "yes and no": ("approval", {"conditions": [YES, NO]}, {(CONDITIONS, "Invalid")}),
    "a yes that is false": (
        "approval",
        {"conditions": [{**YES, "status": "False"}]},
        {(f"{CONDITIONS}[0].status", "NotSupported")},
    ),
    "no certificate": (
        "status",
        {"certificate": _text(b"hello")},
        {(CERTIFICATE, "Invalid")},
    ),
    "a request for a certificate": (
        "status",
        {"certificate": request_text()},
        {(CERTIFICATE, "Invalid")},
    ),
}


@pytest.mark.parametrize("case", WRITES)
def test_writes_that_are_refused(case: str) -> None:
    """The field and reason of every error."""
    part, status, causes = WRITES[case]
    assert written(part, make(), **status)[1] == causes


def test_what_was_decided_and_signed_stays() -> None:
    """A yes cannot be taken back, and a certificate not be exchanged."""
    approved, _ = written("approval", make(), conditions=[YES])
    assert written("approval", approved, conditions=[])[1] == {(CONDITIONS, "Forbidden")}
    issued, _ = written("status", approved, certificate=certificate_text())
    other = _text(base64.b64decode(certificate_text()) * 2)
    assert written("status", issued, certificate=other)[1] == {(CERTIFICATE, "Forbidden")}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, "Pending"),
        ({"conditions": [YES]}, "Approved"),
        ({"conditions": [NO]}, "Denied"),
        ({"conditions": [YES, {"type": "Failed", "status": "True"}]}, "Approved,Failed"),
        ({"conditions": [YES], "certificate": "eA=="}, "Approved,Issued"),
    ],
)
def test_its_row_says_how_far_it_is(status: dict[str, Any], words: str) -> None:
    """Decided or not, failed, issued; and for how long it is wanted."""
    made = {**make(expirationSeconds=3600), "status": status}
    row = {column.name: column.cell(made, NOW) for column in RESOURCE.columns}
    assert (row["Condition"], row["RequestedDuration"]) == (words, "60m")
