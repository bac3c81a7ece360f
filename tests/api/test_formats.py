"""The words in which names are refused are the API server's: clients and tests compare them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from drayman.api import formats

UUID = "0d3ba5ba-3f5f-4d0c-8a4e-2f6f1c1f9b11"
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an"
    " alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
NORMALIZED = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
Check = Callable[[str], formats.Problems]


@pytest.mark.parametrize(
    ("check", "text", "problems"),
    [
        pytest.param(formats.dns_label_problems, "a-1", [], id="label"),
        pytest.param(formats.dns_label_problems, "A", [LABEL], id="label in upper case"),
        pytest.param(formats.dns_label_problems, "a.b", ["must not contain dots"], id="dots"),
        pytest.param(
            formats.dns_label_problems,
            "A" * 64,
            ["must be no more than 63 characters", LABEL],
            id="everything wrong at once",
        ),
        pytest.param(
            formats.dns_subdomain_problems,
            "x" * 254,
            ["must be no more than 253 characters"],
            id="long subdomain",
        ),
        pytest.param(
            formats.long_name_problems,
            "x" * 254,
            ["must be no more than 253 bytes"],
            id="long name by declared rules",
        ),
        pytest.param(formats.caseless_long_name_problems, "A.b", [], id="upper case accepted"),
        pytest.param(formats.label_value_problems, "", [], id="empty label value"),
        pytest.param(
            formats.label_key_problems,
            "",
            ["name part must be non-empty", NAME_PART],
            id="empty label key",
        ),
        pytest.param(
            formats.label_key_problems, "/a", ["prefix part must be non-empty"], id="empty prefix"
        ),
        pytest.param(formats.uuid_problems, UUID, [], id="UUID"),
        pytest.param(formats.uuid_problems, UUID.upper(), [NORMALIZED], id="UUID in upper case"),
        pytest.param(formats.uuid_problems, f"{{{UUID}}}", [NORMALIZED], id="UUID in braces"),
        pytest.param(formats.uuid_problems, f"urn:uuid:{UUID}", [NORMALIZED], id="UUID as URN"),
        pytest.param(
            formats.uuid_problems,
            f"urn:guid:{UUID}",
            ['error validating uid: invalid urn prefix: "urn:guid:"'],
            id="other URN",
        ),
        pytest.param(
            formats.uuid_problems,
            f"[{UUID}]",
            ["error validating uid: invalid bracketed UUID format"],
            id="other brackets",
        ),
        pytest.param(
            formats.uuid_problems,
            "g" * 32,
            ["error validating uid: invalid UUID format"],
            id="no digits",
        ),
        pytest.param(
            formats.uuid_problems,
            "x",
            ["error validating uid: invalid UUID length: 1"],
            id="short UUID",
        ),
        pytest.param(
            formats.interface_address_problems,
            "10.0.0.01/24",
            ['must be in canonical form ("10.0.0.1/24")'],
            id="leading zero",
        ),
    ],
)
def test_words(check: Check, text: str, problems: list[str]) -> None:
    """A text gives these problems, in this order."""
    assert list(check(text)) == problems
