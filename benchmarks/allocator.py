"""CPU time of the search: recorded problems beside upstream's time, and families grown to 512 devices.

    allocator.py [--conformance DIR] [--policy first-fit|best] [--sizes 64,512] [--seeds N] [--only files|families]

Inventory and selectors are ready before the clock starts. One JSON line per figure; the exit status is 1 if a bar is missed. The
recorded problems are looked for beside the repository and left out with a message if they are not there.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from drayman.allocator import Exhausted, Plan, Policy, Refusal, search
from drayman.simulate.problems import build, decode_problem
from families import BAR_MS, SIZES, Instance, instances
from measure import cpu_ms, percentile, report

CONFORMANCE = Path(__file__).parents[2] / "shared" / "conformance"
FILES = ("table.json", "directed.jsonl", "fuzz.jsonl", "scaling.jsonl")
FILE_BARS_MS = {"fuzz.jsonl": 50.0, "scaling.jsonl": 50.0}
FUZZ_MEDIAN_BAR_MS = 0.3


@dataclass(frozen=True, slots=True)
class Timing:
    """What one search took and came to."""

    name: str
    outcome: str
    steps: int
    ms: float


def time_search(problem: dict[str, Any], policy: Policy) -> Timing:
    """The search alone, everything it reads being there."""
    decoded = decode_problem(problem)
    inventory, ledger = build(decoded)
    view = inventory.view(decoded.node, ledger)
    search(view, decoded.claims, policy=policy)  # compiles the selectors
    ms, outcome = cpu_ms(lambda: search(view, decoded.claims, policy=policy))
    match outcome:
        case Plan():
            word = "allocated"
        case Refusal():
            word = "unallocatable"
        case Exhausted():
            word = "limit"
        case _:
            word = "error"
    return Timing(decoded.name, word, outcome.steps, ms)


def bench_files(folder: Path, policy: Policy) -> bool:
    """Per file the median, p99 and maximum, and what upstream took for the same problems."""
    met = True
    for name in FILES:
        problems = read(folder / "allocator" / name)
        timings = [time_search(problem, policy) for problem in problems]
        ours = [timing.ms for timing in timings]
        theirs = [problem["upstream_us"] / 1e3 for problem in problems if "upstream_us" in problem]
        their_steps = [p["upstream_steps"] for p in problems if "upstream_steps" in p]
        slowest = max(timings, key=lambda timing: timing.ms)
        ok = slowest.ms <= FILE_BARS_MS.get(name, float("inf"))
        if name == "fuzz.jsonl":
            ok = ok and median(ours) <= FUZZ_MEDIAN_BAR_MS
        met = met and ok
        for figure, of in (("median", 0.5), ("p99", 0.99), ("max", 1.0)):
            value = percentile(ours, of)
            upstream = percentile(theirs, of) if theirs else None
            report(
                bench="file",
                file=name,
                policy=policy.value,
                problems=len(problems),
                figure=figure,
                ms=value,
                upstream_ms=upstream,
                ratio=value / upstream if upstream else None,
                steps=percentile([timing.steps for timing in timings], of),
                upstream_steps=percentile(their_steps, of) if their_steps else None,
            )
        report(bench="file", file=name, policy=policy.value, slowest=slowest.name, bar_met=ok)
    return met


def read(path: Path) -> list[dict[str, Any]]:
    text = path.read_text()
    if path.suffix == ".json":
        return list(json.loads(text))
    return [json.loads(line) for line in text.splitlines()]


def bench_families(sizes: tuple[int, ...], seeds: int, policy: Policy) -> bool:
    """Per family and size the slowest of all seeds, with what the search came to."""
    groups: dict[tuple[str, int], list[Instance]] = {}
    for instance in instances(sizes, seeds):
        groups.setdefault((instance.family, instance.size), []).append(instance)
    met = [_bench_group(group, policy) for group in groups.values()]
    return all(met)


def _bench_group(group: list[Instance], policy: Policy) -> bool:
    timings = [time_search(instance.problem, policy) for instance in group]
    first = group[0]
    outcomes = sorted(timing.outcome for timing in timings)
    slowest = max(timings, key=lambda timing: timing.ms)
    ok = first.want.issuperset(outcomes) and slowest.ms <= first.bar_ms
    report(
        bench="family",
        family=first.family,
        size=first.size,
        policy=policy.value,
        want=" or ".join(sorted(first.want)),
        outcomes=outcomes,
        median_ms=median(timing.ms for timing in timings),
        max_ms=slowest.ms,
        steps=max(timing.steps for timing in timings),
        bar_ms=first.bar_ms if math.isfinite(first.bar_ms) else None,
        bar_met=ok,
    )
    return ok


def parse(arguments: Iterable[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU time of the allocator's search.")
    parser.add_argument("--conformance", type=Path, default=CONFORMANCE, metavar="DIR")
    policies = [policy.value for policy in Policy]
    parser.add_argument("--policy", choices=policies, default=Policy.FIRST_FIT.value)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=["files", "families"])
    return parser.parse_args(list(arguments) if arguments is not None else None)


def main() -> int:
    options = parse()
    policy = Policy(options.policy)
    sizes = tuple(int(size) for size in options.sizes.split(","))
    met = True
    if options.only != "families":
        if options.conformance.is_dir():
            met = bench_files(options.conformance, policy)
        else:
            sys.stderr.write(f"no recorded problems at {options.conformance}: left out\n")
    if options.only != "files":
        met = bench_families(sizes, options.seeds, policy) and met
    report(bench="allocator", policy=policy.value, bar_ms=BAR_MS, all_bars_met=met)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
