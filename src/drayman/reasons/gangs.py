"""Why a gang waits: its object is missing or does not make sense, members do not exist or are not ready, or they do not fit at once."""

from __future__ import annotations

from drayman.placement.gangs.gang import Flaw, FlawKind, Gang
from drayman.placement.gangs.quorum import Shortfall
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import counted


def flawed(flaw: Flaw) -> Headline:
    """Why a pod that says that it is in a gang is not known to be in one."""
    is_missing = flaw.kind is FlawKind.MISSING
    reason = Reason.POD_GROUP_MISSING if is_missing else Reason.GANG_INVALID
    return Headline.of(reason, _sentence(str(flaw)))


def incomplete(gang: Gang, lack: Shortfall) -> Headline:
    """Why a gang waits before a place is looked for."""
    who = f"subgroup {lack.subgroup} of {gang.key}" if lack.subgroup else str(gang.key)
    if lack.counts_subgroups:
        has = counted(lack.has, "complete subgroup")
        return Headline.of(
            Reason.GANG_INCOMPLETE,
            _sentence(f"{who} has {has}, and {lack.needs:,} start together"),
        )
    return Headline.of(
        Reason.GANG_INCOMPLETE,
        _sentence(f"{who} has {lack.has:,} of the {lack.needs:,} pods that start together"),
    )


def unready(gang: Gang, lack: Shortfall, member: str, why: Headline) -> Headline:
    """Why a gang waits whose members exist, if some of them wait for something of their own."""
    said = incomplete(gang, lack)
    return Headline.of(said.reason, f"{said.sentence[:-1]} and are ready. Pod {member}: {why}")


def too_large(gang: Gang, fitting: int, needed: int, place: str, next_one: str) -> Headline:
    """Why a gang waits that no place has room for: how many of it fit at once in the best place, and why no more."""
    where = f" in {place}" if place else ""
    sentence = _sentence(f"{gang.key}: {fitting:,} of {counted(needed, 'pod')} fit at once{where}")
    reason = Reason.GANG_SCATTERED if place else Reason.GANG_TOO_LARGE
    return Headline.of(reason, f"{sentence} The next one: {next_one}" if next_one else sentence)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
