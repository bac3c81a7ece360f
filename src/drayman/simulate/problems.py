"""Allocation problems as files: a node, its slices, what is in use, and the claims to allocate on it.

One problem is one JSON object; the fields are those of the structs below. Solving one neither reads nor changes any cluster.
"""

from __future__ import annotations

import gzip
import io
import re
import time
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec import field
from msgspec.structs import replace

from drayman.allocator import Exhausted, Fault, Outcome, Plan, Policy, Refusal, Scope, search
from drayman.api.carrying import unknown_fields
from drayman.api.codec import convert, to_dict
from drayman.api.core import Node
from drayman.api.documents import MAX_BYTES
from drayman.api.errors import DecodeError, JsonError, SelectorError
from drayman.api.loading import LONGEST_NAME
from drayman.api.quantity import Quantity
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.api.struct import ApiStruct, Json
from drayman.api.syntax import json_text
from drayman.api.validation.field_errors import elided
from drayman.inventory import DeviceId, Features, Holding, Inventory, Ledger, NodeView

_HELD_BEFORE = "in use before"
_AGGREGATE = "aggregate"
_LINE = re.compile(rb"[^\n]+")
_NEEDED = ("node", "claims")
_GATES = frozenset(
    {
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAListTypeAttributes",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
    }
)


class HeldDevice(ApiStruct):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] = {}

    @property
    def id(self) -> DeviceId:
        return DeviceId(self.driver, self.pool, self.device)


class Allocated(ApiStruct):
    """What is in use already."""

    devices: tuple[HeldDevice, ...] = ()
    shared_devices: tuple[HeldDevice, ...] = ()
    aggregated_capacity: tuple[HeldDevice, ...] = ()


class Problem(ApiStruct):
    name: str
    features: tuple[str, ...] | None = None  # gates that are on; absent: all
    node: Node = Node()
    classes: tuple[DeviceClass, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    allocated: Allocated = Allocated()


class ProblemError(Exception):
    """A file of problems cannot be read; says where."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What the allocator answered, and the effort it took."""

    name: str
    outcome: Outcome
    elapsed_us: int  # CPU time of the search, inventory built and selectors compiled
    cold_us: int  # wall clock from the decoded problem to the answer

    def to_line(self) -> dict[str, Json]:
        """The answer as one JSON object: name, outcome, results or error, and what it took."""
        line: dict[str, Json] = {"name": self.name}
        match self.outcome:
            case Plan() as plan:
                line["outcome"] = "allocated"
                line["results"] = [to_dict(item.allocation) for item in plan.claims]
                if plan.warnings:
                    line["warnings"] = [f"{w.device}: {w.message}" for w in plan.warnings]
            case Refusal():
                line["outcome"] = "unallocatable"
            case Fault() as fault:
                line["outcome"] = "error"
                line["error"] = fault.message
                line["error_scope"] = fault.scope.value
            case Exhausted():
                line["outcome"] = "timeout"
        line["elapsed_us"] = self.elapsed_us
        line["cold_us"] = self.cold_us
        line["steps"] = self.outcome.steps
        return line


def decode_problem(value: Json) -> Problem:
    """A problem from its decoded JSON. Raises ProblemError, naming the problem and the field."""
    title = _title(value)
    try:
        problem = convert(Problem, value)
    except DecodeError as error:
        raise ProblemError(f"{title}{error}") from error
    for name in _NEEDED:
        if name not in value:
            raise ProblemError(f"{title}{name}: a value is required")
    return problem


def decode_problems(
    name: str, data: bytes, remark: Callable[[str], None] = lambda message: None
) -> Iterator[Problem]:
    """The problems of a file: a JSON array (`.json`) or one object a line (`.jsonl`), either also with `.gz`.

    Fields that have no meaning are reported to `remark`. Raises ProblemError.
    """
    plain = name.removesuffix(".gz")
    if plain != name:
        data = _decompressed(name, data)
    values = _from_array(name, data) if plain.endswith(".json") else _from_lines(name, data)
    for place, value in values:
        try:
            problem = decode_problem(value)
        except ProblemError as error:
            raise ProblemError(f"{place}: {error}") from error
        for message in _without_meaning(problem, value):
            remark(f"{place}: {_title(value)}{message}")
        yield problem


def _title(value: Json) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return f"problem {elided(name, LONGEST_NAME)}: " if isinstance(name, str) and name else ""


def _without_meaning(problem: Problem, value: Json) -> Iterator[str]:
    """Fields and gates that change nothing, most likely misspelt. At the top level there may be notes of any kind."""
    for path in unknown_fields(Problem, value):
        if "." in path and not path.startswith("node."):  # few fields of a node are declared
            yield f"{elided(path, LONGEST_NAME)}: unknown field"
    for gate in problem.features or ():
        if gate not in _GATES:
            yield f"features: {elided(gate, LONGEST_NAME)} is not a gate of the allocator"


def _decompressed(name: str, data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ProblemError(f"{name}: not a gzip file: {error}") from error
    if len(text) > MAX_BYTES:
        raise ProblemError(f"{name}: more than {MAX_BYTES >> 20} MiB when unpacked")
    return text


def _from_array(name: str, data: bytes) -> Iterator[tuple[str, Json]]:
    try:
        values = json_text.parse(data)
    except JsonError as error:
        raise ProblemError(f"{name}:{error.line}: {error.reason}") from error
    if not isinstance(values, list):
        raise ProblemError(f"{name}: expected an array of problems")
    for index, value in enumerate(values):
        yield f"{name}: [{index}]", value


def _from_lines(name: str, data: bytes) -> Iterator[tuple[str, Json]]:
    number, counted = 1, 0
    for match in _LINE.finditer(data, len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0):
        number += data.count(b"\n", counted, match.start())
        counted = match.start()
        if match[0].isspace():
            continue
        try:
            yield f"{name}:{number}", json_text.parse(match[0])
        except JsonError as error:
            where = f", column {error.column}" if error.column else ""
            raise ProblemError(f"{name}:{number}: {error.reason}{where}") from error


def build(problem: Problem) -> tuple[Inventory, Ledger]:
    """The inventory and the ledger that a problem describes."""
    gates = problem.features
    inventory = Inventory(Features() if gates is None else Features.from_gates(gates))
    for device_class in problem.classes:
        inventory.apply_class(device_class)
    for slice_ in _with_own_names(problem.slices):
        inventory.apply_slice(slice_)
    ledger = Ledger()
    ledger.observe(_HELD_BEFORE, _holdings(problem.allocated))
    return inventory, ledger


def _with_own_names(slices: Iterable[ResourceSlice]) -> Iterator[ResourceSlice]:
    """The slices, renamed where a name repeats: in a file, unlike in a cluster, nothing keeps names unique."""
    seen: Counter[str] = Counter()
    for slice_ in slices:
        name = slice_.metadata.name
        if seen[name]:
            metadata = replace(slice_.metadata, name=f"{name}~{seen[name]:06}")
            slice_ = replace(slice_, metadata=metadata)
        seen[name] += 1
        yield slice_


def _holdings(allocated: Allocated) -> Iterator[Holding]:
    for held in allocated.devices:
        yield Holding(held.id)
    for held in allocated.shared_devices:
        yield Holding(held.id, held.share_id or "")
    for held in allocated.aggregated_capacity:
        amounts = {name: q.amount for name, q in held.consumed_capacity.items()}
        yield Holding(held.id, _AGGREGATE, amounts)


def solve(problem: Problem, policy: Policy, max_steps: int | None = None) -> Solution:
    """Answer one problem."""
    begun = time.perf_counter()
    inventory, ledger = build(problem)
    try:
        view = inventory.view(problem.node, ledger)
    except SelectorError as error:
        return Solution(problem.name, Fault(str(error), Scope.FATAL), 0, _since(begun))
    return _solve_on(view, problem, policy, max_steps, begun)


def _solve_on(
    view: NodeView, problem: Problem, policy: Policy, max_steps: int | None, begun: float
) -> Solution:
    search(view, problem.claims, policy=policy, max_steps=max_steps)
    cold = _since(begun)
    warm = time.thread_time()
    outcome = search(view, problem.claims, policy=policy, max_steps=max_steps)
    elapsed = round((time.thread_time() - warm) * 1_000_000)
    return Solution(problem.name, outcome, elapsed, cold)


def _since(begun: float) -> int:
    return round((time.perf_counter() - begun) * 1_000_000)
