"""Whom certificates are for."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.workloads.certificates.users import certified_user

CASES: dict[str, tuple[dict[str, Any], tuple[str, tuple[str, ...]]]] = {
    "a user": ({"subject": ((("commonName", "alice"),),)}, ("alice", ())),
    "a user in groups": (
        {
            "subject": (
                (("organizationName", "dev"),),
                (("organizationName", "ops"), ("commonName", "alice")),
            )
        },
        ("alice", ("dev", "ops")),
    ),
    "the last name counts": (
        {"subject": ((("commonName", "alice"),), (("commonName", "bob"),))},
        ("bob", ()),
    ),
    "nobody": ({"subject": ((("countryName", "XX"),),)}, ("", ())),
    "no certificate": ({}, ("", ())),
}


@pytest.mark.parametrize(("certificate", "user"), CASES.values(), ids=CASES)
def test_users(certificate: dict[str, Any], user: tuple[str, tuple[str, ...]]) -> None:
    """As the TLS library describes the certificate."""
    assert certified_user(certificate) == user
