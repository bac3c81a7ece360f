"""Reading requests for certificates."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from drayman.workloads.certificates.model import Asked
from drayman.workloads.certificates.texts import request_in


class RequestError(Exception):
    """A request that is signed, but cannot be understood."""


_SUBJECT: Final = (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)


def asked(request: str) -> Asked:
    """What the request in a CertificateSigningRequest asks for. Raises RequestError."""
    try:
        read = request_in(base64.b64decode(request))
        return _asked(read)
    except (ValueError, binascii.Error, x509.DuplicateExtension) as error:
        raise RequestError(f"the request cannot be read: {error}") from error


def _asked(request: x509.CertificateSigningRequest) -> Asked:
    names = [_text(part) for part in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if len(names) != 1:
        raise RequestError(f"the subject has {len(names)} common names instead of one")
    alternatives = [e.value for e in request.extensions if _is_alternatives(e)]
    found = [name for each in alternatives if isinstance(each, x509.SubjectAlternativeName)
             for name in each]  # fmt: skip
    return Asked(
        common_name=names[0],
        organizations=tuple(
            _text(part)
            for part in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        ),
        subject_more=tuple(part.oid._name for part in request.subject if part.oid not in _SUBJECT),
        dns_names=tuple(name.value for name in found if isinstance(name, x509.DNSName)),
        addresses=tuple(str(name.value) for name in found if isinstance(name, x509.IPAddress)),
        other_names=tuple(
            type(name).__name__
            for name in found
            if not isinstance(name, x509.DNSName | x509.IPAddress)
        ),
        has_alternatives=bool(alternatives),
        extensions=tuple(
            each.oid._name for each in request.extensions if not _is_alternatives(each)
        ),
    )


def _is_alternatives(extension: x509.Extension[x509.ExtensionType]) -> bool:
    return extension.oid == x509.SubjectAlternativeName.oid


def _text(part: x509.NameAttribute[str | bytes]) -> str:
    return part.value if isinstance(part.value, str) else part.value.decode("utf-8", "replace")
