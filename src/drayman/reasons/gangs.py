"""Why a gang cannot be decided about yet: its object is missing or does not make sense, or members do not exist."""

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


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
