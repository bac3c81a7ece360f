"""`drayman validate`: what the API server would say about manifests, without one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import click

from drayman.cli import files
from drayman.cli.errors import UserError
from drayman.cli.output import format_option, print_data, to_stderr, to_stdout

if TYPE_CHECKING:
    from drayman.api.checking import Report

_MOST_KINDS: Final = 8

_EPILOG: Final = """\b
Examples:
  drayman validate claim.yaml
  drayman validate manifests/ more.json
  helm template chart/ | drayman validate -
  drayman validate -o json claim.yaml
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=files.PATH)
@format_option
def validate(paths: tuple[str, ...], output_format: str | None) -> None:
    """Check manifests as the API server would.

    Prints `file:line: Kind name: field: message` for each error, and exits 1 if there are any. Device selectors are
    compiled and their cost is estimated. All versions of resource.k8s.io are understood. There are rules for the kinds of
    resource.k8s.io, Pods, Nodes and Namespaces; objects of other kinds are counted and not checked. FILE may be a folder, or -
    for standard input.
    """
    from drayman.api import codec
    from drayman.questions.validate import validate as checked
    from drayman.questions.validate import validation

    inputs, unreadable = _read_all(paths)
    report = checked(inputs)
    if output_format:
        print_data(codec.to_dict(validation(report, unreadable)), output_format)
    else:
        _print(report, unreadable)
    if unreadable or not report.ok:
        click.get_current_context().exit(UserError.exit_code)


def _read_all(paths: Iterable[str]) -> tuple[list[tuple[str, bytes]], list[str]]:
    """(name, content) of every file, and errors for those that cannot be read."""
    inputs: list[tuple[str, bytes]] = []
    unreadable: list[str] = []
    for path in _expanded(paths, unreadable):
        try:
            inputs.append((files.display_name(path), files.read(path)))
        except UserError as error:
            unreadable.append(error.message)
    return inputs, unreadable


def _expanded(paths: Iterable[str], unreadable: list[str]) -> Iterator[str]:
    """The paths, with folders replaced by the manifests in them."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        try:
            yield from files.manifests_in(path)
        except UserError as error:
            unreadable.append(error.message)


def _print(report: Report, unreadable: list[str]) -> None:
    for message in unreadable:
        to_stdout(message)
    for finding in report.findings:
        # A message of several lines, such as an expression with a caret, stays one block.
        to_stdout(str(finding).replace("\n", "\n    "))
    for line in _summary(report, unreadable):
        to_stderr(line)


def _summary(report: Report, unreadable: list[str]) -> Iterator[str]:
    """What was checked and with what result; and what was not checked, because nothing is known about its kind."""
    from drayman.questions.validate import kinds_not_checked
    from drayman.reasons.wording import counted

    errors, warnings = len(report.errors) + len(unreadable), len(report.warnings)
    checked = len(report.objects) - len(report.not_checked)
    result = counted(errors, "error") if errors else "no errors"
    if warnings:
        result += f", {counted(warnings, 'warning')}"
    yield f"{counted(checked, 'object')} checked: {result}"
    if report.not_checked:
        kinds = kinds_not_checked(report)
        listed = ", ".join(f"{number} {kind}" for kind, number in list(kinds.items())[:_MOST_KINDS])
        rest = len(kinds) - _MOST_KINDS
        listed += f" and {counted(rest, 'kind')} more" if rest > 0 else ""
        yield f"{counted(len(report.not_checked), 'object')} of other kinds not checked: {listed}"
