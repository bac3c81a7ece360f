"""`drayman cel`: check and evaluate device selectors."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.cli import files
from drayman.cli.errors import UserError
from drayman.cli.output import console, format_option, print_data, to_stderr, to_stdout
from drayman.printable import printable

if TYPE_CHECKING:
    from drayman.cel.environment import Evaluation
    from drayman.cli.devices import NamedDevice

_MOST_NAMED: Final = 3

_EPILOG: Final = """\b
Examples:
  drayman cel --expression "device.driver == 'dra.net'" --devices slices.yaml
  kubectl get resourceslices -o json > slices.json
  drayman cel -e "device.attributes['gpu.nvidia.com'].type == 'gpu'" \\
      --devices slices.json
  drayman cel --vectors vectors.jsonl --devices devices.json \\
      --results out.jsonl

Devices are ResourceSlices (YAML or JSON, also a List), or a JSON array of
{"name", "driver", "device"}.
"""


@click.command(epilog=_EPILOG)
@click.option("-e", "--expression", metavar="EXPR", help="Evaluate one selector, for people.")
@click.option(
    "--vectors", type=files.PATH, metavar="FILE", help="Evaluate a .jsonl of {id, expression}."
)
@click.option(
    "--devices",
    "devices_file",
    type=files.PATH,
    required=True,
    metavar="FILE",
    help="The devices.",
)
@click.option(
    "--results",
    type=files.PATH,
    default=files.STANDARD,
    metavar="FILE",
    help="Where results of --vectors go.",
)
@format_option
def cel(
    expression: str | None,
    vectors: str | None,
    devices_file: str,
    results: str,
    output_format: str | None,
) -> None:
    """Check and evaluate CEL device selectors.

    With --expression: prints for each device whether it matches, and exits 1 if the selector does not compile. A selector fails on
    devices that lack an attribute it reads, such as those of other drivers: test device.driver first.

    With --vectors: writes a line for each expression with what it gives on each device and what it costs.
    """
    if (expression is None) == (vectors is None):
        raise click.UsageError("give either --expression or --vectors")
    if vectors is not None and output_format is not None:
        raise click.UsageError("--output goes with --expression; results of --vectors are JSON")
    if expression is not None and results != files.STANDARD:
        raise click.UsageError("--results goes with --vectors")
    if vectors == devices_file == files.STANDARD:
        raise click.UsageError("--vectors and --devices cannot both be standard input")
    from drayman.cli.devices import read_devices

    files.refuse_overwriting(results, devices_file, vectors or files.STANDARD)
    devices = read_devices(devices_file)
    if vectors is not None:
        _refuse_same_names(files.display_name(devices_file), devices)
        _evaluate_vectors(vectors, devices, results)
    elif expression is not None:
        _evaluate_one(expression, devices, output_format)


def _refuse_same_names(file: str, devices: list[NamedDevice]) -> None:
    """Results are by name, so one of two devices with the same name would be lost."""
    seen: set[str] = set()
    for item in devices:
        if item.name in seen:
            raise UserError(f"{file}: device {item.name}: name: appears twice")
        seen.add(item.name)


def _evaluate_vectors(path: str, devices: list[NamedDevice], results: str) -> None:
    from drayman.cli.progress import tracked

    vectors = _read_vectors(path)
    with files.writing(results) as out:
        for identifier, expression in tracked(vectors, "evaluating"):
            line = {"id": identifier, **_vector_result(expression, devices)}
            out.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    to_stderr(f"{len(vectors)} expressions on {len(devices)} devices")


def _vector_result(expression: str, devices: list[NamedDevice]) -> dict[str, Any]:
    from drayman.cel.device import compile_selector
    from drayman.cel.errors import CompileError

    try:
        selector = compile_selector(expression)
    except CompileError as error:
        return {"compiles": False, "error": str(error)}
    found = {item.name: selector.evaluate(item.driver, item.device) for item in devices}
    return {
        "compiles": True,
        "results": {
            name: "error" if evaluation.error is not None else evaluation.value is True
            for name, evaluation in found.items()
        },
        "max_cost": selector.max_cost,
        "costs": {name: evaluation.cost for name, evaluation in found.items()},
    }


def _read_vectors(path: str) -> list[tuple[str, str]]:
    """(id, expression) of each line."""
    from drayman.api.errors import JsonError
    from drayman.api.syntax import json_text

    name = files.display_name(path)
    vectors = []
    lines: dict[str, int] = {}
    for number, line in enumerate(files.read(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json_text.parse(line)
        except JsonError as error:
            raise UserError(f"{name}:{number}: {error.reason}") from error
        if not isinstance(entry, dict):
            raise UserError(f"{name}:{number}: expected an object with id and expression")
        for field in ("id", "expression"):
            if not isinstance(entry.get(field), str):
                raise UserError(f"{name}:{number}: {field}: expected string")
        earlier = lines.setdefault(entry["id"], number)
        if earlier != number:
            raise UserError(f"{name}:{number}: id: {entry['id']} is already in line {earlier}")
        vectors.append((entry["id"], entry["expression"]))
    return vectors


def _evaluate_one(expression: str, devices: list[NamedDevice], output_format: str | None) -> None:
    from drayman.cel.device import compile_selector
    from drayman.cel.errors import CompileError
    from drayman.cel.missing import missing_names

    try:
        selector = compile_selector(expression)
    except CompileError as error:
        raise UserError(f"the selector does not compile\n{error}") from error
    missing = missing_names(selector.reads, [(item.driver, item.device) for item in devices])
    found = [(item, selector.evaluate(item.driver, item.device)) for item in devices]
    if output_format:
        print_data(
            {
                "maxCost": selector.max_cost,
                "missing": [str(name) for name in missing],
                "devices": [_as_data(item, evaluation) for item, evaluation in found],
            },
            output_format,
        )
        return
    _print_verdicts(found)
    for name in missing:
        to_stdout(str(name))


def _as_data(item: NamedDevice, evaluation: Evaluation) -> dict[str, Any]:
    data = {"device": item.name, "driver": item.driver, "cost": evaluation.cost}
    if evaluation.error is not None:
        return {**data, "result": "error", "error": str(evaluation.error)}
    return {**data, "result": evaluation.value is True}


def _print_verdicts(found: list[tuple[NamedDevice, Evaluation]]) -> None:
    from rich.text import Text

    width = max((len(printable(item.name)) for item, _ in found), default=0)
    alike = {error: names for error, names in _failures(found).items() if len(names) > 1}
    out = console()
    for item, evaluation in found:
        name = f"{printable(item.name):{width}}"
        word, style, detail = _words(evaluation, alike)
        if out.is_terminal:
            out.print(Text.assemble(name, "  ", (word, style), detail), soft_wrap=True)
        else:  # rich is slow for what may be all devices of a cluster
            to_stdout(f"{name}  {word}{detail}")
    matches = sum(evaluation.value is True for _, evaluation in found)
    out.print(f"{matches} of {len(found)} devices match")
    for error, names in alike.items():
        such = ", ".join(names[:_MOST_NAMED])
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        to_stdout(f"error on {len(names)} devices ({such}{more}): {error}")


def _failures(found: list[tuple[NamedDevice, Evaluation]]) -> dict[str, list[str]]:
    """The errors, and the devices on which each occurs."""
    failures: dict[str, list[str]] = {}
    for item, evaluation in found:
        if evaluation.error is not None:
            failures.setdefault(str(evaluation.error), []).append(item.name)
    return failures


def _words(evaluation: Evaluation, listed_below: Container[str]) -> tuple[str, str, str]:
    """The verdict in a word, its style, and what follows it."""
    if evaluation.error is not None:
        error = str(evaluation.error)
        return "error", "red", "" if error in listed_below else f"  {printable(error)}"
    return ("match", "green", "") if evaluation.value is True else ("no", "dim", "")
