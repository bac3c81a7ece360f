"""A total that users share, so that one user's flood leaves room for others."""

from __future__ import annotations

from dataclasses import dataclass, field

from drayman.apiserver.protocol.access import User, is_system


@dataclass(slots=True)
class Shares:
    """How much of a total each user has taken.

    A user may have as much as is still free: one user alone gets half of the total, two get a third each, and something is always left
    for the next one. Others cannot have the reserve; it is for users of the system, so that an administrator can always work.
    """

    most: int
    reserve: int = 0
    taken: int = 0
    _by_user: dict[str, int] = field(default_factory=dict)

    def has_room(self, user: User, amount: int = 1) -> bool:
        free = self.most - self.taken
        if not is_system(user):
            free -= self.reserve
        return self._by_user.get(user.name, 0) + amount <= free

    def use_of(self, user: User) -> tuple[int, str, int]:
        """How much a user has taken, and which other user has taken the most, with the amount; an empty name if no other has any."""
        others = {name: taken for name, taken in self._by_user.items() if name != user.name}
        first = max(others, key=lambda name: others[name], default="")
        return self._by_user.get(user.name, 0), first, others.get(first, 0)

    def taking(self, user: User, amount: int = 1) -> Taking:
        """Counts an amount as taken while the context is open, whether there is room or not."""
        return Taking(self, user.name, amount)

    def add(self, user: str, amount: int) -> None:
        """Count more as taken, or less."""
        self.taken += amount
        amount += self._by_user.get(user, 0)
        if amount:
            self._by_user[user] = amount
        else:
            del self._by_user[user]


class Taking:
    """What a user has taken for a while. A class rather than a generator: every request has one."""

    __slots__ = ("_amount", "_shares", "_user")

    def __init__(self, shares: Shares, user: str, amount: int) -> None:
        self._shares = shares
        self._user = user
        self._amount = amount

    def __enter__(self) -> None:
        self._shares.add(self._user, self._amount)

    def __exit__(self, *error: object) -> None:
        self._shares.add(self._user, -self._amount)
