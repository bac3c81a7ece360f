"""Prices: the table that `--prices` names, and amounts as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drayman.cli import files
from drayman.cli.errors import UserError

if TYPE_CHECKING:
    from drayman.cli.connecting import Where
    from drayman.placement.prices import PriceTable


def load_prices(path: str | None, where: Where | None = None) -> PriceTable:
    """The table in a file; without a file, the one that is in use in a cluster, as far as that is known.

    Where there is none, only labels of nodes say what they cost. Raises UserError and QuestionError.
    """
    if path is None:
        return _prices_in(where)
    from drayman.api.errors import DocumentError
    from drayman.placement.price_table import read_price_table

    try:
        return read_price_table(files.display_name(path), files.read(path))
    except DocumentError as error:
        raise UserError(str(error)) from error


def _prices_in(where: Where | None) -> PriceTable:
    from drayman.placement.prices import NO_PRICES
    from drayman.questions.prices import prices_in_use

    return NO_PRICES if where is None else prices_in_use(where.connection(), where.data_dir)


def money(amount: float, currency: str = "") -> str:
    """As in `1,234.50 USD`. Small amounts have more digits."""
    number = f"{amount:,.2f}" if amount >= 1 or not amount else f"{amount:.4f}"
    return f"{number} {currency}" if currency else number
