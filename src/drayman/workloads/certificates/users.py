"""Whom a certificate is for: its common name is a user, its organizations are groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class CertifiedUser(NamedTuple):
    name: str
    """Empty if the certificate is for nobody."""
    groups: tuple[str, ...]


def certified_user(certificate: Mapping[str, Any]) -> CertifiedUser:
    """By a certificate that the TLS library has verified, as it describes it. Of several names the last one counts."""
    subject = [part for several in certificate.get("subject", ()) for part in several]
    names = [value for key, value in subject if key == "commonName"]
    groups = tuple(value for key, value in subject if key == "organizationName")
    return CertifiedUser(names[-1] if names else "", groups)
