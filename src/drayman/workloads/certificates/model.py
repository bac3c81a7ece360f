"""What a request for a certificate asks for, beyond its key."""

from __future__ import annotations

from msgspec import Struct


class Asked(Struct, frozen=True):
    """What a certificate is to say of its holder."""

    common_name: str
    organizations: tuple[str, ...] = ()
    subject_more: tuple[str, ...] = ()
    """Other parts of the subject, by name."""
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """IP addresses, as text."""
    other_names: tuple[str, ...] = ()
    """Alternative names of other sorts, by sort."""
    has_alternatives: bool = False
    extensions: tuple[str, ...] = ()
    """Extensions other than alternative names, by name."""
