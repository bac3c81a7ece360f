"""`drayman snapshot`: a cluster in a file, for plans that are made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from drayman.cli import files
from drayman.cli.connecting import cluster_options, talk
from drayman.cli.worlds import unobtrusively

if TYPE_CHECKING:
    from drayman.cluster import Client
    from drayman.placement.world import World

_EPILOG: Final = """\b
Examples:
  drayman snapshot > cluster.yaml
  drayman snapshot -o yaml              one field a line, to be read
  drayman snapshot -o json > cluster.json
"""


@click.command(
    short_help="Print what explain, plan and capacity need of a cluster.", epilog=_EPILOG
)
@click.option(
    "-o",
    "--output",
    "output_format",
    type=click.Choice(["lines", "yaml", "json"]),
    default="lines",
    show_default=True,
    help="lines: YAML with one object a line, which is read fastest; yaml: one field a line; json: a list.",
)
@cluster_options
def snapshot(
    output_format: str, kubeconfig: Path | None, data_dir: Path | None, context: str
) -> None:
    """Print what `explain`, `plan` and `capacity` need to know of a cluster.

    That is nodes, devices, claims, pods and what else has a say in where pods go. Secrets are not read. Environment variables, commands,
    annotations of users and parameters for drivers are left out.
    """

    async def work(client: Client) -> World:
        from drayman.cli.worlds import read_with_rules

        return await read_with_rules(client, None, workloads=True)

    with unobtrusively():
        world = talk(kubeconfig, data_dir, work, context=context)
    from drayman.simulate.snapshot import snapshot as texts_of

    write = {"lines": _lines, "yaml": _yaml, "json": _json}[output_format]
    with files.writing(files.STANDARD) as out:
        for piece in write(texts_of(world)):
            out.write(piece)


def _lines(texts: Iterable[bytes]) -> Iterator[bytes]:
    """JSON is YAML too, and read many times faster than the rest of it."""
    for text in texts:
        yield b"---\n%b\n" % text


def _yaml(texts: Iterable[bytes]) -> Iterator[bytes]:
    import json

    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    for text in texts:
        value = json.loads(text)
        shown = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True)
        yield b"---\n" + shown.encode()


def _json(texts: Iterable[bytes]) -> Iterator[bytes]:
    yield b'{"apiVersion":"v1","kind":"List","items":[\n'
    separator = b""
    for text in texts:
        yield separator + text
        separator = b",\n"
    yield b"\n]}\n"
