"""Checking files of objects: everything that can be said without a cluster.

Decodes any served version, fills in defaults, and applies the rules of the API, those about status where a file has one, and
those that need several objects at once: names that occur twice and admin access in a namespace that is among the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from drayman.api import validation
from drayman.api.carrying import Carried
from drayman.api.core import Namespace, Node, Pod
from drayman.api.defaults import with_defaults
from drayman.api.errors import DocumentError
from drayman.api.formats import dns_label_problems
from drayman.api.loading import LoadedObject, LoadFinding, Severity, load_files
from drayman.api.resource import (
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.struct import ApiStruct
from drayman.api.validation import FieldError, SelectorChecker
from drayman.api.validation.claim_status import check_status
from drayman.api.validation.metadata import check_metadata
from drayman.api.validation.requests import RequestNames
from drayman.api.validation.resource_slice import warnings
from drayman.api.validation.taints import check_rule_conditions

MAX_ERRORS: Final = 1_000
"""Most errors, and most warnings, that are reported: a file that has more is not corrected line by line."""

_ANY_TIME: Final = "1970-01-01T00:00:00Z"
"""Stands in for the time of writing, which no rule looks at."""


@dataclass(frozen=True, slots=True)
class Report:
    """What checking files found."""

    objects: tuple[LoadedObject, ...]
    findings: tuple[LoadFinding, ...]

    @property
    def errors(self) -> tuple[LoadFinding, ...]:
        return tuple(f for f in self.findings if f.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[LoadFinding, ...]:
        return tuple(f for f in self.findings if f.severity is Severity.WARNING)

    @property
    def not_checked(self) -> tuple[LoadedObject, ...]:
        """Objects of kinds that Drayman has no rules for."""
        return tuple(loaded for loaded in self.objects if loaded.kind is None)

    @property
    def ok(self) -> bool:
        return not self.errors


class _Collector:
    """Findings up to what a person would read. Further warnings are only counted; a further error ends the checking."""

    def __init__(self) -> None:
        self._findings: list[LoadFinding] = []
        self._kept: Counter[Severity] = Counter()
        self._unsaid = 0

    @property
    def full(self) -> bool:
        return self._kept[Severity.ERROR] >= MAX_ERRORS

    def extend(self, findings: Iterable[LoadFinding]) -> None:
        for finding in findings:
            if self.full:
                return
            if finding.severity is Severity.WARNING and self._kept[Severity.WARNING] >= MAX_ERRORS:
                self._unsaid += 1
                continue
            self._kept[finding.severity] += 1
            self._findings.append(finding)

    def result(self) -> tuple[LoadFinding, ...]:
        closing = []
        if self.full:
            message = f"{MAX_ERRORS} errors are enough; nothing beyond them has been checked"
            closing.append(self._remark(Severity.ERROR, message))
        if self._unsaid:
            closing.append(self._remark(Severity.WARNING, f"{self._unsaid} more warnings left out"))
        return (*self._findings, *closing)

    def _remark(self, severity: Severity, message: str) -> LoadFinding:
        return LoadFinding(severity, self._findings[-1].file, 0, "", "", message)


Advice = Callable[[ApiStruct], Iterable[tuple[str, str]]]
"""What others than the API server will say about an object: paths and messages."""


def no_advice(_: ApiStruct) -> Iterable[tuple[str, str]]:
    """Nobody else is asked."""
    return ()


def check_files(
    inputs: Iterable[tuple[str, bytes]],
    selectors: SelectorChecker,
    advice: Advice = no_advice,
) -> Report:
    """Check files, given as names and bytes. Never raises for what is in them. What is advised is reported as warnings."""
    objects: list[LoadedObject] = []
    findings = _Collector()
    for result in load_files(inputs):
        if isinstance(result, LoadedObject):
            objects.append(result)
        else:
            findings.extend([result])
        if findings.full:
            break
    namespaces = _namespaces(objects)
    for loaded in objects:
        findings.extend(_check(loaded, selectors, namespaces, advice))
        if findings.full:
            break
    findings.extend(_duplicates(objects))
    return Report(tuple(objects), findings.result())


def _namespaces(objects: Iterable[LoadedObject]) -> dict[str, Namespace]:
    return {
        loaded.metadata.name: loaded.carried.object
        for loaded in objects
        if loaded.carried is not None and isinstance(loaded.carried.object, Namespace)
    }


def _check(
    loaded: LoadedObject,
    selectors: SelectorChecker,
    namespaces: dict[str, Namespace],
    advice: Advice,
) -> Iterator[LoadFinding]:
    if loaded.carried is None:
        return
    value = _defaulted(loaded.carried, loaded.version)
    errors = list(_rules(value, selectors))
    namespace = namespaces.get(loaded.namespace)
    if namespace is not None and isinstance(value, ResourceClaim | ResourceClaimTemplate):
        errors.extend(validation.check_admin_access(value, namespace))
    # Several rules may say the same about one field.
    for error in {str(error): error for error in errors}.values():
        yield loaded.finding(error.path, error.body, error=error)
    told = warnings(value) if isinstance(value, ResourceSlice) else advice(value)
    for path, message in told:
        yield loaded.finding(path, message, severity=Severity.WARNING)


def _defaulted(carried: Carried[ApiStruct], version: str) -> ApiStruct:
    """An object as the API server would store it, except for the time."""
    return with_defaults(carried.object, now=_ANY_TIME, version=version or "v1")


def load(text: str | bytes, name: str = "<text>") -> tuple[ApiStruct, ...]:
    """The objects in a text of YAML or JSON, in its order, as the API server would store them: for users of Drayman as a library.

    `name` is what errors call the text. Raises DocumentError, also for a field that does not exist: a warning would not be seen.
    """
    data = text.encode() if isinstance(text, str) else text
    found = []
    for result in load_files([(name, data)]):
        if isinstance(result, LoadFinding):
            subject = ": ".join(part for part in (result.object, result.path) if part)
            message = f"{subject}: {result.message}" if subject else result.message
            raise DocumentError(name, result.line, message)
        if result.carried is None:
            place = result.document.line
            raise DocumentError(name, place, f"{result.title}: there is no type for this kind")
        found.append(_defaulted(result.carried, result.version))
    return tuple(found)


def _rules(value: ApiStruct, selectors: SelectorChecker) -> Iterator[FieldError]:
    """The rules for creating an object, and those for its status as if that were written right after."""
    match value:
        case Node():
            yield from check_metadata(value.metadata, namespaced=False)
            return
        case Namespace():
            yield from check_metadata(
                value.metadata, namespaced=False, name_problems=dns_label_problems
            )
            return
        case Pod():
            yield from check_metadata(value.metadata, namespaced=True)
            yield from validation.validate_status(value, value)
        case ResourceClaim():
            names = RequestNames.of(value.spec.devices)
            yield from check_status(value.status, ResourceClaimStatus(), names, deleting=False)
        case DeviceTaintRule():
            yield from check_rule_conditions(value, "status.conditions")
    yield from validation.validate(value, selectors)


def _duplicates(objects: Iterable[LoadedObject]) -> Iterator[LoadFinding]:
    """Objects that occur twice with different content.

    When files are applied in turn, which is normal, the later one replaces the earlier one. Within a file it is a mistake.
    """
    first: dict[tuple[str, str, str, str], LoadedObject] = {}
    for loaded in objects:
        if not loaded.metadata.name:
            continue
        earlier = first.setdefault(loaded.identity, loaded)
        if earlier is loaded or loaded.same_content(earlier):
            continue
        file = earlier.document.file
        in_one_file = file == loaded.document.file
        yield loaded.finding(
            "metadata.name",
            f"the same object is in {file}:{earlier.document.line} already, with other content",
            severity=Severity.ERROR if in_one_file else Severity.WARNING,
        )
