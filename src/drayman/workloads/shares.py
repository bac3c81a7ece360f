"""Numbers that may be given as a share of a whole, such as `maxSurge: 25%`."""

from __future__ import annotations

from drayman.api.integers import parse_count


def resolve(amount: int | str | None, whole: int, *, up: bool, default: int | str = 0) -> int:
    """The number that is meant. A share that does not come out even is rounded up or down."""
    if amount is None:
        amount = default
    if isinstance(amount, int):
        return amount
    percent = parse_count(amount.removesuffix("%"))
    return -(-whole * percent // 100) if up else whole * percent // 100
