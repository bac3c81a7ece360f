"""What the API server would say about manifests, without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from drayman.api.checking import Report, check_files
from drayman.api.loading import LoadFinding
from drayman.api.struct import ApiStruct
from drayman.cel.device import check_selector
from drayman.driver_configs.advice import advice_about

_LONGEST_KIND: Final = 63


class Mistake(ApiStruct):
    """Something that is wrong, or likely to be, at a place in a file."""

    severity: str
    file: str
    line: int | None
    object: str
    field: str
    reason: str | None
    """The API rule that it breaks, if it is one of those."""
    message: str


class Validation(ApiStruct):
    """What there is to say about files."""

    valid: bool
    objects: int
    not_checked: Mapping[str, int]
    """How many objects are of kinds without rules."""
    unreadable: tuple[str, ...]
    """What is wrong with files that could not be read."""
    findings: tuple[Mistake, ...]


def validate(inputs: Iterable[tuple[str, bytes]]) -> Report:
    """Check files, given as names and bytes. Device selectors are compiled and their cost is estimated.

    What drivers will refuse when they prepare devices, the API server accepts: these are warnings.
    """
    return check_files(inputs, check_selector, advice_about)


def validation(report: Report, unreadable: Sequence[str] = ()) -> Validation:
    """The same as plain values."""
    return Validation(
        valid=report.ok and not unreadable,
        objects=len(report.objects),
        not_checked=kinds_not_checked(report),
        unreadable=tuple(unreadable),
        findings=tuple(map(_mistake, report.findings)),
    )


def kinds_not_checked(report: Report) -> dict[str, int]:
    """How many objects there are of each kind without rules."""
    found = Counter(loaded.kind_name[:_LONGEST_KIND] for loaded in report.not_checked)
    return dict(sorted(found.items()))


def _mistake(finding: LoadFinding) -> Mistake:
    return Mistake(
        severity=finding.severity.value,
        file=finding.file,
        line=finding.line or None,
        object=finding.object,
        field=finding.path,
        reason=None if finding.error is None else finding.error.reason,
        message=finding.message,
    )
