"""`drayman migrate`: rewrites manifests that request devices in earlier ways, and finds nodes that are half migrated."""

from __future__ import annotations

import difflib
import os
import stat
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.cli import files
from drayman.cli.connecting import Where, cluster_options, talk
from drayman.cli.errors import UserError, no_answer
from drayman.cli.output import (
    console,
    format_option,
    print_data,
    print_verbatim,
    to_stderr,
    to_stdout,
)
from drayman.printable import printable

if TYPE_CHECKING:
    from drayman.cluster import Client
    from drayman.migrate import MigratedFile, Migration
    from drayman.migrate.overlap import Overlap

_EPILOG: Final = """\b
Examples:
  drayman migrate claim.yaml                   the new text, to look at
  drayman migrate --diff claim.yaml            what would change
  drayman migrate --write manifests/*.yml
  helm template chart/ | drayman migrate -
  drayman migrate --nodes                      devices offered twice
"""
_INCOMPLETE: Final = 1


@click.command(epilog=_EPILOG)
@click.argument("paths", metavar="[FILE]...", nargs=-1, type=files.PATH)
@click.option("--diff", "as_diff", is_flag=True, help="Print what would change.")
@click.option("-w", "--write", "in_place", is_flag=True, help="Rewrite the files themselves.")
@click.option(
    "--pod-groups", is_flag=True, help="Rewrite PodGroups of the coscheduling plugin too."
)
@click.option("--nodes", is_flag=True, help="Look for devices that a cluster offers twice.")
@format_option
@cluster_options
@no_answer()
def migrate(
    paths: tuple[str, ...],
    as_diff: bool,
    in_place: bool,
    pod_groups: bool,
    nodes: bool,
    output_format: str | None,
    where: Where,
) -> None:
    """Rewrite manifests for resource.k8s.io/v1.

    Takes claims and classes of v1alpha2 to v1beta2, and pods that ask a device plugin for devices (nvidia.com/gpu: 2).
    Comments, order and layout stay. Give all files that belong together at once: claims name parameters, pods name
    claims. FILE may be - for standard input.

    Prints the new text, and on standard error what could not be carried over and why. Exit status: 0 everything was
    carried over, 1 something was not, 2 the input cannot be read.

    With --nodes: the nodes of a cluster on which a device plugin and a DRA driver both offer the same devices. Exit
    status 1 if there are any.
    """
    if nodes:
        _check_usage(paths, as_diff or in_place or pod_groups)
        _report_nodes(talk(where, _overlaps), output_format)
        return
    if not paths:
        raise click.UsageError("Missing argument 'FILE...', or --nodes.")
    if as_diff + in_place + bool(output_format) > 1:
        raise click.UsageError("Only one of --diff, --write and --output can be given.")
    if in_place and files.STANDARD in paths:
        raise click.UsageError("standard input cannot be rewritten; leave --write out")
    migration = _migrated(paths, pod_groups)
    if output_format:
        print_data(_as_data(migration), output_format)
    else:
        _show(migration, paths, as_diff, in_place)
    if not migration.is_complete:
        click.get_current_context().exit(_INCOMPLETE)


def _check_usage(paths: tuple[str, ...], about_files: bool) -> None:
    if paths or about_files:
        raise click.UsageError("--nodes looks at a cluster and takes no files.")


def _migrated(paths: tuple[str, ...], pod_groups: bool) -> Migration:
    from drayman.api.errors import DocumentError
    from drayman.migrate import migrate as rewrite

    inputs = [(files.display_name(path), _text(path)) for path in paths]
    try:
        return rewrite(inputs, with_pod_groups=pod_groups)
    except DocumentError as error:
        raise UserError(str(error)) from error


def _text(path: str) -> str:
    data = files.read(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{files.display_name(path)}:{line}: not valid UTF-8") from error


def _show(migration: Migration, paths: tuple[str, ...], as_diff: bool, in_place: bool) -> None:
    if (as_diff or in_place) and not any(file.is_changed for file in migration.files):
        to_stderr("nothing to change")
    if as_diff:
        for file in migration.files:
            _print_diff(file)
    elif in_place:
        for path, file in zip(paths, migration.files, strict=True):
            _rewrite(path, file)
    else:
        _print_files(migration.files)
        for file in migration.files:
            if not file.before.strip():
                to_stderr(f"{file.name} is empty: nothing to migrate")
    for remark in migration.remarks:
        line = str(remark) if remark.is_lost else f"note: {remark}"
        to_stderr(line)


def _print_files(migrated: Any) -> None:
    """All texts as one stream of documents."""
    for position, file in enumerate(migrated):
        if position and not file.after.startswith("---"):
            to_stdout("---")
        ends = file.after.endswith("\n") or not file.after
        print_verbatim(file.after, nl=not ends)


def _print_diff(file: MigratedFile) -> None:
    before, after = file.before.splitlines(keepends=True), file.after.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, file.name, file.name):
        print_verbatim(line, nl=not line.endswith("\n"))
        if not line.endswith("\n"):
            to_stdout("\\ No newline at end of file")


def _rewrite(path: str, file: MigratedFile) -> None:
    if not file.is_changed:
        return
    mode = stat.S_IMODE(os.stat(path).st_mode)
    with files.writing(path) as stream:
        stream.write(file.after.encode())
    os.chmod(path, mode)
    to_stdout(f"{file.name} rewritten")


def _as_data(migration: Migration) -> dict[str, Any]:
    return {
        "complete": migration.is_complete,
        "files": [
            {"file": file.name, "changed": file.is_changed, "text": file.after}
            for file in migration.files
        ],
        "remarks": [
            {
                "file": each.file,
                "line": each.line,
                "object": each.object,
                "field": each.field,
                "message": each.message,
                "lost": each.is_lost,
            }
            for each in migration.remarks
        ],
    }


async def _overlaps(client: Client) -> list[Overlap]:
    from drayman.cluster.resources import NODES, RESOURCE_SLICES
    from drayman.migrate.overlap import overlaps

    nodes = (await client.list_all(NODES)).items
    slices = (await client.list_all(RESOURCE_SLICES)).items
    return list(overlaps(nodes, slices))


def _report_nodes(found: list[Overlap], output_format: str | None) -> None:
    if output_format:
        print_data({"overlaps": [_overlap(each) for each in found]}, output_format)
    elif found:
        _print_overlaps(found)
    else:
        to_stdout("no node offers a device through both a device plugin and a DRA driver")
    if found:
        click.get_current_context().exit(_INCOMPLETE)


def _overlap(each: Overlap) -> dict[str, Any]:
    return {
        "node": each.node,
        "resource": each.resource,
        "count": each.count,
        "driver": each.driver,
        "devices": each.devices,
        "advice": each.advice,
        "command": each.command.replace("NODE", each.node) or None,
    }


def _print_overlaps(found: list[Overlap]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("NODE", "PLUGIN OFFERS", "DRIVER PUBLISHES"):
        table.add_column(heading, overflow="fold")
    for each in found:
        offered = f"{each.count} {each.resource}"
        published = f"{each.devices} devices of {each.driver}"
        table.add_row(*(Text(printable(cell)) for cell in (each.node, offered, published)))
    screen = console()
    screen.print(table)
    screen.print("\nOne device can be given to two pods there. What to do:", style="yellow")
    for advice, command in dict.fromkeys((each.advice, each.command) for each in found):
        screen.print(f"- {advice}")
        if command:
            screen.print(f"  {command}")
