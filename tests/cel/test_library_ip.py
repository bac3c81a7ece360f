"""Addresses and prefixes."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cel.environments import FUNCTIONS
from drayman.cel.errors import EvaluationError
from drayman.cel.libraries import cidr, ip

ADDRESSES = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).filter(
    lambda address: getattr(address, "ipv4_mapped", None) is None
)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("10.0.0.1", True),
        ("::1", True),
        ("2001:DB8::1", True),
        ("::1.2.3.4", True),
        ("1:2:3:4:5:6:7::", True),
        ("", False),
        ("x", False),
        ("10.0.0", False),
        ("10.0.0.256", False),
        ("10.0.0.01", False),
        ("10.0.0.1 ", False),
        ("10.0.0.1/8", False),
        ("1::2::3", False),
        ("12345::", False),
        ("1:2:3:4:5:6:7:8:9", False),
        ("::ffff:1.2.3.4", False),
        ("fe80::1%eth0", False),
        ("١.0.0.1", False),
    ],
)
def test_is_ip(text: str, want: bool) -> None:
    """Addresses are what Go parses, without zones and IPv4 in IPv6; `ip` fails for everything else."""
    assert ip.is_ip(text) is want
    if not want:
        with pytest.raises(EvaluationError):
            ip.parse_ip(text)


@pytest.mark.parametrize(
    ("text", "family", "properties"),
    [
        ("0.0.0.0", 4, {"unspecified"}),
        ("127.1.2.3", 4, {"loopback"}),
        ("169.254.0.1", 4, {"link_local_unicast"}),
        ("224.0.0.1", 4, {"link_local_multicast"}),
        ("224.0.1.1", 4, set()),
        ("255.255.255.255", 4, set()),
        ("10.0.0.1", 4, {"global_unicast"}),
        ("8.8.8.8", 4, {"global_unicast"}),
        ("::", 6, {"unspecified"}),
        ("::1", 6, {"loopback"}),
        ("fe80::1", 6, {"link_local_unicast"}),
        ("ff02::1", 6, {"link_local_multicast"}),
        ("ff12::1", 6, {"link_local_multicast"}),
        ("ff05::1", 6, set()),
        ("fd00::1", 6, {"global_unicast"}),
        ("2001:db8::1", 6, {"global_unicast"}),
    ],
)
def test_properties(text: str, family: int, properties: set[str]) -> None:
    """An address is of one family and of at most one of these kinds."""
    value = ip.parse_ip(text)
    names = [
        "unspecified",
        "loopback",
        "link_local_unicast",
        "link_local_multicast",
        "global_unicast",
    ]
    assert FUNCTIONS["ip_family"](value) == family
    assert {name for name in names if FUNCTIONS[f"ip_is_{name}"](value)} == properties


@pytest.mark.parametrize(
    ("text", "want"),
    [("10.0.0.1", True), ("2001:db8::1", True), ("2001:DB8::1", False), ("1:0:0:0:0:0:0:1", False)],
)
def test_is_canonical(text: str, want: bool) -> None:
    """An address is canonical when it is written as it would be printed."""
    assert ip.is_canonical(text) is want


def test_is_canonical_of_something_else() -> None:
    """What is no address is an error, not false."""
    with pytest.raises(EvaluationError):
        ip.is_canonical("x")


@given(ADDRESSES)
def test_printed_address_reads_back(address: ip.Address) -> None:
    """The text of an address is canonical and reads as the same address."""
    text = FUNCTIONS["ip_to_string"](ip.IpValue(address))
    assert ip.is_canonical(text)
    assert ip.parse_ip(text).equals(ip.IpValue(address))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("10.0.0.0/8", True),
        ("10.1.2.3/8", True),
        ("::/0", True),
        ("2001:db8::/128", True),
        ("10.0.0.0/0", True),
        ("10.0.0.0/33", False),
        ("::/129", False),
        ("10.0.0.0", False),
        ("10.0.0.0/", False),
        ("10.0.0.0/08", False),
        ("10.0.0.0/+8", False),
        ("10.0.0.0/-1", False),
        ("/8", False),
        ("::ffff:1.2.3.4/120", False),
        ("fe80::1%eth0/64", False),
    ],
)
def test_is_cidr(text: str, want: bool) -> None:
    """A prefix is an address, a slash and a length without leading zeros; `cidr` fails for everything else."""
    assert cidr.is_cidr(text) is want
    if not want:
        with pytest.raises(EvaluationError):
            cidr.parse_cidr(text)


@pytest.mark.parametrize(
    ("prefix", "address", "want"),
    [
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.1.2.3/8", "10.9.9.9", True),
        ("10.0.0.0/8", "::1", False),
        ("::/0", "10.0.0.1", False),
        ("0.0.0.0/0", "255.255.255.255", True),
        ("2001:db8::/32", "2001:db8:1::", True),
        ("10.0.0.1/32", "10.0.0.1", True),
    ],
)
def test_contains_ip(prefix: str, address: str, want: bool) -> None:
    """Only the bits of the prefix count, and only within a family; the address may be text."""
    value = cidr.parse_cidr(prefix)
    assert FUNCTIONS["cidr_contains_ip_ip"](value, ip.parse_ip(address)) is want
    assert FUNCTIONS["cidr_contains_ip_string"](value, address) is want


@pytest.mark.parametrize(
    ("prefix", "other", "want"),
    [
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("10.0.0.0/8", "10.0.0.0/8", True),
        ("10.1.0.0/16", "10.0.0.0/8", False),
        ("10.0.0.0/8", "11.0.0.0/16", False),
        ("10.0.0.0/8", "::/16", False),
    ],
)
def test_contains_cidr(prefix: str, other: str, want: bool) -> None:
    """A prefix contains the longer ones that begin with it."""
    value = cidr.parse_cidr(prefix)
    assert cidr.contains_cidr(value, cidr.parse_cidr(other)) is want
    assert FUNCTIONS["cidr_contains_cidr_string"](value, other) is want


@pytest.mark.parametrize("other", ["x", "10.0.0.0/99"])
def test_contains_nonsense(other: str) -> None:
    """Text that is neither address nor prefix is an error."""
    value = cidr.parse_cidr("10.0.0.0/8")
    with pytest.raises(EvaluationError):
        FUNCTIONS["cidr_contains_ip_string"](value, other)
    with pytest.raises(EvaluationError):
        FUNCTIONS["cidr_contains_cidr_string"](value, other)


def test_parts_of_a_prefix() -> None:
    """The address stays as written until it is masked."""
    value = cidr.parse_cidr("10.1.2.3/8")
    assert FUNCTIONS["cidr_to_string"](value) == "10.1.2.3/8"
    assert FUNCTIONS["ip_to_string"](FUNCTIONS["cidr_ip"](value)) == "10.1.2.3"
    assert FUNCTIONS["cidr_prefix_length"](value) == 8
    assert FUNCTIONS["cidr_to_string"](cidr.masked(value)) == "10.0.0.0/8"
    assert not value.equals(cidr.masked(value))
    assert (value.cost_size, FUNCTIONS["cidr_ip"](value).cost_size) == (1, 4)


@given(ADDRESSES, st.integers(0, 32), ADDRESSES)
def test_containment_is_that_of_networks(address: ip.Address, bits: int, other: ip.Address) -> None:
    """Containment agrees with the standard library's networks."""
    network = ipaddress.ip_network((address, bits), strict=False)
    value = cidr.parse_cidr(f"{address}/{bits}")
    assert FUNCTIONS["cidr_contains_ip_ip"](value, ip.IpValue(other)) is (other in network)
    assert FUNCTIONS["cidr_contains_ip_ip"](value, ip.IpValue(address))


@pytest.mark.parametrize("value", [ip.parse_ip("::1"), cidr.parse_cidr("::/1")])
def test_equality_with_something_else(value: ip.IpValue | cidr.CidrValue) -> None:
    """Addresses and prefixes cannot be compared with strings."""
    with pytest.raises(EvaluationError):
        value.equals("::1")
