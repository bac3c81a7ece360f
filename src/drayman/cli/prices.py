"""Prices: the table that `--prices` names, and amounts as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drayman.cli import files
from drayman.cli.errors import UserError

if TYPE_CHECKING:
    from drayman.placement.prices import PriceTable


def load_prices(path: str | None) -> PriceTable:
    """The table in a file; without a file, only labels of nodes say what they cost. Raises UserError."""
    from drayman.placement.prices import NO_PRICES

    if path is None:
        return NO_PRICES
    from drayman.api.errors import DocumentError
    from drayman.placement.price_table import read_price_table

    try:
        return read_price_table(files.display_name(path), files.read(path))
    except DocumentError as error:
        raise UserError(str(error)) from error


def money(amount: float, currency: str = "") -> str:
    """As in `1,234.50 USD`. Small amounts have more digits."""
    number = f"{amount:,.2f}" if amount >= 1 or not amount else f"{amount:.4f}"
    return f"{number} {currency}" if currency else number
