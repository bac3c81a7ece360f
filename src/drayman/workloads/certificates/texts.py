"""Certificate requests and certificates in PEM form: what is wrong with one.

The library that reads them is loaded on first use; few clusters have any.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

_BLOCK: Final = re.compile(
    rb"-----BEGIN ([^-\n]+)-----\r?\n(.*?)-----END \1-----(?:\r?\n|$)", re.DOTALL
)
_REQUEST: Final = "CERTIFICATE REQUEST"
_CERTIFICATE: Final = "CERTIFICATE"
_MASTERS: Final = "system:masters"


def request_problem(pem: bytes) -> str:
    """Why a text is not a request signed by its key; empty if it is one."""
    from cryptography import x509

    block = _BLOCK.search(pem)
    if block is None or block[1].decode("ascii", "replace") != _REQUEST:
        return f"PEM block type must be {_REQUEST}"
    try:
        request = x509.load_der_x509_csr(_content(block[2]))
        return "" if request.is_signature_valid else "x509: the signature is not that of the key"
    except (ValueError, binascii.Error) as error:
        return f"x509: {error}"


def certificate_problem(pem: bytes) -> str:
    """Why a text is not a sequence of certificates; empty if it is one, or if it is empty."""
    from cryptography import x509

    if not pem:
        return ""
    blocks = list(_BLOCK.finditer(pem))
    for block in blocks:
        kind = block[1].decode("ascii", "replace")
        if kind != _CERTIFICATE:
            return f'only {_CERTIFICATE} PEM blocks are allowed, found "{kind}"'
        if b":" in block[2]:
            return "no PEM block headers are permitted"
        try:
            x509.load_der_x509_certificate(_content(block[2]))
        except (ValueError, binascii.Error) as error:
            return f"x509: {error}"
    return "" if blocks else f"must contain at least one {_CERTIFICATE} PEM block"


def asks_for_masters(pem: bytes) -> bool:
    """Whether a request that can be read would make its holder a member of `system:masters`."""
    from cryptography.x509.oid import NameOID

    subject = request_in(pem).subject
    return any(
        part.value == _MASTERS for part in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    )


def request_in(pem: bytes) -> CertificateSigningRequest:
    """The request that a text contains. Raises ValueError and binascii.Error for one in which `request_problem` finds something."""
    from cryptography import x509

    block = _BLOCK.search(pem)
    if block is None:
        raise ValueError("there is no PEM block")
    return x509.load_der_x509_csr(_content(block[2]))


def _content(lines: bytes) -> bytes:
    return base64.b64decode(b"".join(lines.split()), validate=True)
