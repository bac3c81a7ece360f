"""Try the driver `gpu.nvidia.com` on this machine: what it publishes, and what can be done with its GPUs.

    pip install 'drayman[nvidia]'
    sudo python examples/hardware/check_nvidia.py

It starts a cluster in the process, and the driver beside it. First it asks for claims as a kubelet would; then it runs pods with them on
this machine, looks at what they see, how much memory they get, and whether they use a GPU together. Each step says what happened, that the
machine does not permit it, or why it failed; everything is undone before the next, and no step takes longer than two minutes. Nothing else
should use the GPUs meanwhile. On a machine that is lent, `--keep-settings` leaves out what changes settings of the GPUs.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from gpu_pods import HEAD, NODE, GpuCluster, StepError, gpu_cluster

from drayman.api.resource import Device
from drayman.cluster.options import ListOptions
from drayman.cluster.resources import RESOURCE_SLICES
from drayman.drivers.kit import KitError, Plugin
from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.drivers.nvidia.settings import KEEP
from drayman.plugins.model import Ready
from drayman.testing import FakeKubelet, TestCluster

NAME = NvidiaGpuDriver.name
CUDA = [sys.executable, str(Path(__file__).with_name("use_cuda.py").absolute())]
LIMIT = "4Gi"
"""Of MPS. What CUDA itself takes of a GPU counts, which can be more than 0.5Gi."""
BELOW, ABOVE = "512", "8192"
"""MiB, of which the limit allows one."""
BUSY = ["--seconds", "5"]
STEP_S = 120.0
LONGEST_S = 1800.0
STATE = "name,driver_version,pci.bus_id,compute_mode,mig.mode.current,mig.mode.pending"
"""Of a GPU, which is to be afterwards as it was before."""
WHEN = re.compile(r"from ([0-9.]+) s to ([0-9.]+) s")
REFUSALS = (
    "not permitted",
    "Insufficient Permissions",
    "is not installed",
    "Not Supported",
    "must be reset",
    "No such file or directory",
    "does not have nvidia-caps",
)
"""Words of messages that speak of the machine, and not of a mistake."""


async def step(title: str, work: Awaitable[str]) -> str:
    """What came of it, as a line."""
    try:
        async with asyncio.timeout(STEP_S):
            return f"{title}: done: {await work}"
    except TimeoutError:
        return f"{title}: failed: nothing happened within {STEP_S:g} s"
    except StepError as error:
        refused = any(word in str(error) for word in REFUSALS)
        return f"{title}: {'not permitted' if refused else 'failed'}: {error}"
    except Exception as error:  # the next step may well succeed
        return f"{title}: failed: {type(error).__name__}: {error}"


# --- As a kubelet would ask -----------------------------------------------------------------------


async def check(driver: NvidiaGpuDriver, folder: Path) -> AsyncIterator[str]:
    """The steps without containers, each as a line when it is done."""
    async with TestCluster(folder) as cluster, FakeKubelet(cluster.client, NODE, folder) as kubelet:
        await cluster.add_node(NODE)
        async with Plugin(driver, cluster.client, kubelet.options()):
            await kubelet.registered(NAME)
            devices: list[Device] = []
            yield await step("published", published(cluster, devices))
            for line in described(devices):
                yield line
            for kind in ("gpu", "mig"):
                found = [each for each in devices if each.attributes["type"].string == kind]
                for title, config in configs(kind, driver).items() if found else ():
                    work = use(cluster, kubelet, found[0], config)
                    yield await step(f"{found[0].name}, {title}", work)


def configs(kind: str, driver: NvidiaGpuDriver) -> dict[str, Any]:
    """By what they show."""
    alone = {"alone": None}
    return alone | {"time slices": by_slices(driver), "MPS": by_mps()} if kind == "gpu" else alone


def by_slices(driver: NvidiaGpuDriver) -> Any:
    """Slices of another length than the default one, if that may be set."""
    slices = {"interval": "Default" if driver.keeps_settings else "Long"}
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": slices}
    return HEAD | {"kind": "GpuConfig", "sharing": sharing}


def by_mps() -> Any:
    sharing = {"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": LIMIT}}
    return HEAD | {"kind": "GpuConfig", "sharing": sharing}


async def published(cluster: TestCluster, devices: list[Device]) -> str:
    """What the driver has published, once it has."""
    while True:
        found = await cluster.client.list_all(RESOURCE_SLICES, options=ListOptions())
        if found.items and len(found.items) == found.items[0].spec.pool.resource_slice_count:
            break
        await asyncio.sleep(0.1)
    devices += [device for each in found.items for device in each.spec.devices or ()]
    kinds = [str(device.attributes["type"].string) for device in devices]
    counts = ", ".join(f"{kinds.count(kind)} of type {kind}" for kind in dict.fromkeys(kinds))
    return f"{len(devices)} devices in {len(found.items)} slices, {counts}"


def described(devices: list[Device]) -> list[str]:
    """The first device of each type, with all it says."""
    firsts = {str(device.attributes["type"].string): device for device in reversed(devices)}
    lines = []
    for device in firsts.values():
        lines.append(f"  {device.name}")
        for name, each in device.attributes.items():
            values = (each.string, each.version, each.int_, each.bool_)
            lines.append(f"    {name}: {next(value for value in values if value is not None)}")
        lines += [f"    {name}: {each.value}" for name, each in device.capacity.items()]
    return lines


async def use(cluster: TestCluster, kubelet: FakeKubelet, device: Device, config: Any) -> str:
    """Prepare a claim for a device, say what a container would get, and undo it. Raises StepError."""
    entries = [{"source": "FromClaim", "opaque": {"driver": NAME, "parameters": config}}]
    claim = await cluster.allocate(
        "c", NAME, NODE, {"gpu": device.name}, config=entries if config else ()
    )
    try:
        answer = await kubelet.prepare(NAME, claim)
        if not isinstance(answer, Ready):
            raise StepError(answer.message)
        container = kubelet.container(answer)
        nodes = " ".join(node.path for node in container.device_nodes)
        env = " ".join(f"{key}={value}" for key, value in container.env.items())
        return f"a container gets {nodes}, {len(container.mounts)} mounts, {env}"
    finally:
        failed = await kubelet.unprepare(NAME, claim)
        await cluster.remove_claim("c")
        if failed is not None:
            raise StepError(f"not undone: {failed.message}")


# --- Pods -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A claim, and pods that use it."""

    kind: str
    commands: tuple[list[str], ...]
    config: Any = None
    claim: str = "c"
    """Empty for pods that have none."""
    look: tuple[str, ...] = ()
    """A command that is run in a pod while it runs, and has to say what the pod has said."""
    shown: tuple[tuple[str, ...], ...] = ()
    """Others, of which it is shown what they say."""
    problem: Callable[[str], str] = lambda _: ""
    """What is wrong with what the pods say."""

    async def run(self, cluster: GpuCluster) -> str:
        """What the pods say. Raises StepError."""
        names = [f"p{number}" for number in range(len(self.commands))]
        try:
            if self.claim:
                await cluster.claim(self.claim, self.kind, self.config)
            for name, command in zip(names, self.commands, strict=True):
                await cluster.pod(name, self.claim, command)
            said = [await self._said(cluster, name) for name in names]
            text = " | ".join(" / ".join(each.splitlines()) for each in said)
            problem = self.problem(text)
            if problem:
                raise StepError(f"{problem}: {text}")
            more = [await self._shown(cluster, names[0], command) for command in self.shown]
        finally:
            await cluster.remove(names, self.claim)
        return "\n".join((text, *more))

    async def _said(self, cluster: GpuCluster, name: str) -> str:
        await cluster.reached(name, *(("Running",) if self.look else ("Succeeded",)))
        while not (logs := await cluster.logs(name)):
            await asyncio.sleep(0.2)
        if not self.look:
            return logs
        if shutil.which("kubectl") is None:
            return f"{logs}; exec is not tried, because there is no kubectl"
        seen = await cluster.kubectl("exec", name, "--", *self.look)
        return logs if seen == logs else f"{logs}; exec says {seen}"

    @staticmethod
    async def _shown(cluster: GpuCluster, pod: str, command: tuple[str, ...]) -> str:
        words = ("kubectl", "exec", pod, "--", *command)
        text = f"$ {shlex.join(words)}\n{await cluster.kubectl(*words[1:])}"
        return textwrap.indent(text.rstrip(), "  ")


def only_one_gpu(text: str) -> str:
    count = text.count("GPU ")
    return "" if count == 1 else f"{count} GPUs are seen, and one is asked for"


def no_gpu(text: str) -> str:
    return "it sees what it has not asked for" if "GPU 0" in text else ""


def together(text: str) -> str:
    """Both must have been at it for a while at the same time."""
    times = [(float(begin), float(end)) for begin, end in WHEN.findall(text)]
    if len(times) == 2 and max(times)[0] < min(end for _, end in times) - 1:
        return ""
    return "they did not use the GPU at the same time"


def together_below(text: str) -> str:
    expected = (f"{BELOW} MiB allocated", f"{ABOVE} MiB refused")
    holds = all(text.count(each) == 2 for each in expected)
    return together(text) if holds else "the limit does not hold"


def one_partition(text: str) -> str:
    return "" if text.count("MIG ") == 1 else "the partition is not seen alone"


def trials(smi: str, driver: NvidiaGpuDriver) -> dict[str, Trial]:
    """By what they show; the partition comes last, because it needs the driver to divide GPUs."""
    listing = ["sh", "-c", f"{smi} -L; exec sleep 300"]
    unasked = ["sh", "-c", f"{smi} -L || true"]
    inside = ((smi,), ("sh", "-c", "ls -1 /dev/nvidia*"), ("printenv", "NVIDIA_VISIBLE_DEVICES"))
    below, both = [*CUDA, BELOW, *BUSY], [*CUDA, BELOW, ABOVE, *BUSY]
    return {
        "a pod, its logs and exec": Trial(
            "gpu",
            (listing,),
            look=(smi, "-L"),
            shown=inside if shutil.which("kubectl") else (),
            problem=only_one_gpu,
        ),
        "a pod without a claim": Trial("gpu", (unasked,), claim="", problem=no_gpu),
        "a pod that uses CUDA": Trial("gpu", (both,)),
        "two pods by time slices": Trial(
            "gpu", (below, below), by_slices(driver), problem=together
        ),
        f"two pods by MPS, {LIMIT} each": Trial(
            "gpu", (both, both), by_mps(), problem=together_below
        ),
        "a pod in a partition": Trial("mig", ([smi, "-L"],), problem=one_partition),
    }


async def check_pods(driver: NvidiaGpuDriver, folder: Path, kind: str) -> AsyncIterator[str]:
    """The steps with pods that want devices of a type, each as a line when it is done."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        yield "pods: not permitted: nvidia-smi is not installed"
        return
    async with gpu_cluster(driver, folder) as cluster:
        try:
            async with asyncio.timeout(STEP_S):
                await cluster.published()
        except TimeoutError:
            yield f"pods: failed: nothing is published within {STEP_S:g} s"
            return
        for title, trial in trials(smi, driver).items():
            if trial.kind == kind:
                yield await step(title, trial.run(cluster))


# --- All of it ------------------------------------------------------------------------------------


def show(*command: str) -> None:
    """What a program says, for the transcript."""
    print(f"$ {' '.join(command)}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        print((done.stdout + done.stderr).rstrip())
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"({error})")


async def main(kept: bool) -> None:
    # A library that hangs cannot be told to stop: better no end of the transcript than none of the program.
    faulthandler.dump_traceback_later(LONGEST_S, exit=True)
    print(f"{platform.platform()}, Python {platform.python_version()}, user {os.geteuid()}")
    for command in (("-L",), (f"--query-gpu={STATE}", "--format=csv")):
        show("nvidia-smi", *command)
    await stages("as the GPUs are", "gpu", keep_settings=kept)
    if kept:
        print(f"--- dynamic MIG: not permitted: {KEEP}")
    else:
        await stages("dynamic MIG", "mig", dynamic_mig=True)
    print("--- afterwards")
    show("nvidia-smi", f"--query-gpu={STATE}", "--format=csv")
    faulthandler.cancel_dump_traceback_later()


async def stages(title: str, kind: str, **options: bool) -> None:
    """As a kubelet would ask, and with pods, each with a driver of its own."""
    print(f"--- {title}", flush=True)
    for pods in (False, True):
        with tempfile.TemporaryDirectory(prefix="gpu") as text:
            folder = Path(text)
            try:
                driver = NvidiaGpuDriver(NODE, mps_dir=folder / "mps", **options)
            except KitError as error:
                raise SystemExit(str(error)) from error
            lines = check_pods(driver, folder, kind) if pods else check(driver, folder)
            async for line in lines:
                print(line, flush=True)


def settings_are_kept() -> bool:
    """Anything but the options that there are ends the program before it touches a GPU."""
    parser = argparse.ArgumentParser(
        description="Try the driver gpu.nvidia.com on this machine, and print a transcript.",
        epilog=f"Without {KEEP} it changes GPUs while it runs: time slices, compute mode, and MIG with its partitions."
        " Each step is undone before the next. Nothing else should use the GPUs meanwhile. It takes the rights of root.",
    )
    parser.add_argument(
        KEEP,
        action="store_true",
        help="change no settings of GPUs, as where they are lent: slices of the default length,"
        " MPS in the compute mode that there is, and no MIG",
    )
    return bool(parser.parse_args().keep_settings)


if __name__ == "__main__":
    asyncio.run(main(settings_are_kept()))
