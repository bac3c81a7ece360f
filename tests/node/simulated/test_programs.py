"""What programs print in a container of a simulated node, as functions of what the container sees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from drayman.api.quantity import Quantity
from drayman.api.resource import Device, DeviceRequestAllocationResult
from drayman.driver_configs.decoding import decode
from drayman.driver_configs.known import CONFIGS
from drayman.drivers.profiles import parse_profiles, simulate
from drayman.node.simulated.answering.programs import run
from drayman.node.simulated.answering.prompt import LineEditor
from drayman.node.simulated.answering.sight import SeenDevice, Sight

HARDWARE = simulate(parse_profiles("dgx-h100=1,dgx-h100-mig=1,mi300x=1,gaudi3=1,tpu-v5e-8=1"))
PUBLISHED = {
    (item.spec.driver, item.spec.pool.name, device.name): device
    for node in HARDWARE.nodes
    for item in node.slices
    for device in item.spec.devices or ()
}


def seen(driver: str, pool: str, name: str, **more: object) -> SeenDevice:
    result = DeviceRequestAllocationResult(
        request="r",
        driver=driver,
        pool=pool,
        device=name,
        **more,  # type: ignore[arg-type]
    )
    return SeenDevice("claim", result, PUBLISHED[driver, pool, name])


def sight(*devices: SeenDevice) -> Sight:
    return Sight("default", "training-job", "n", "trainer", devices, {"A": "1"}, ("SECRET",))


GPUS = sight(*(seen("gpu.nvidia.com", "dgx-h100-0", f"gpu-{i}") for i in (3, 1)))
PARTS = sight(
    *(seen("gpu.nvidia.com", "dgx-h100-mig-0", f"gpu-2-mig-1g10gb-19-{i}") for i in (0, 1))
)
AMD = sight(seen("gpu.amd.com", "mi300x-0", "gpu-1-128"))
GAUDI = sight(next(seen(*key) for key in PUBLISHED if key[0] == "gaudi.intel.com"))
TPU = sight(seen("tpu.google.com", "tpu-v5e-8-0", "0"))
NOTHING = sight()


def shared_gpu(strategy: str, **more: object) -> Sight:
    """A GPU of a claim that says how its programs share it."""
    gpu = seen("gpu.nvidia.com", "dgx-h100-0", "gpu-0", **more)
    said = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": {"strategy": strategy},
    }
    config = decode(said, CONFIGS["gpu.nvidia.com"])
    return sight(replace(gpu, claim_uid="u-1", config=config))


MPS = shared_gpu("MPS")
PIPES = "CUDA_MPS_PIPE_DIRECTORY"


def words(text: str) -> list[str]:
    return text.split()


def lines(text: str) -> list[str]:
    return text.splitlines()


def test_gpus_are_counted_from_zero_in_the_order_of_their_bus() -> None:
    """By the names and UUIDs that are published, whatever the order of the claim."""
    first, second = lines(run(GPUS, ["nvidia-smi", "-L"]).text)
    uuids = [
        PUBLISHED["gpu.nvidia.com", "dgx-h100-0", f"gpu-{i}"].attributes["uuid"].string
        for i in (1, 3)
    ]
    assert first == f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuids[0]})"
    assert second == f"GPU 1: NVIDIA H100 80GB HBM3 (UUID: {uuids[1]})"


def test_partitions_are_listed_below_their_gpu() -> None:
    """Each with a UUID of its own, which does not change."""
    gpu, one, other = lines(run(PARTS, ["nvidia-smi", "-L"]).text)
    assert gpu.startswith("GPU 0: NVIDIA H100")
    assert one.startswith("  MIG 1g.10gb         Device  0: (UUID: MIG-")
    assert one.partition("UUID")[2] != other.partition("UUID")[2]
    assert run(PARTS, ["nvidia-smi", "-L"]) == run(PARTS, ["nvidia-smi", "-L"])


@pytest.mark.parametrize("view", [GPUS, PARTS], ids=["whole", "divided"])
def test_the_table_is_straight_and_marked(view: Sight) -> None:
    """All lines are as long as the real program's."""
    table = lines(run(view, ["nvidia-smi"]).text)
    assert {len(line) for line in table if line} == {91}
    assert "(simulated)" in table[1]


def test_limits_of_memory_are_below_the_gpus() -> None:
    """What each program may use with MPS; the real program does not show it."""
    (gpu,) = MPS.devices
    limited = replace(MPS, devices=(replace(gpu, limit=Quantity.parse("10Gi")),))
    table = lines(run(limited, ["nvidia-smi"]).text)
    assert {len(line) for line in table if line} == {91}
    (row,) = [line for line in table if "gpu-0" in line]
    assert row.split() == ["|", "0", "gpu-0", "10240MiB", "|"]
    assert "Memory limit" not in run(MPS, ["nvidia-smi"]).text


def test_a_share_of_a_gpu_has_its_share_of_the_memory() -> None:
    """As far as the claim says how much that is."""
    shared = sight(
        seen(
            "gpu.nvidia.com",
            "dgx-h100-0",
            "gpu-0",
            share_id="s",
            consumed_capacity={"memory": Quantity.parse("10Gi")},
        )
    )
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    assert run(shared, query).text == "10240\n"


PRINTED = [
    ("query", GPUS, ["nvidia-smi", "--query-gpu=index,memory.total", "--format=csv,noheader"], "0, 81559 MiB"),
    ("release", GPUS, ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], "580.126.09\n"),
    ("release in the table", GPUS, ["nvidia-smi"], "Driver Version: 580.126.09 "),
    ("path", GPUS, ["/usr/bin/nvidia-smi", "-L"], "GPU 0: NVIDIA H100"),
    ("shell", GPUS, ["sh", "-c", "nvidia-smi -L"], "GPU 0: NVIDIA H100"),
    ("rocm", AMD, ["rocm-smi"], "AMD_Instinct_MI300X_OAM"),
    ("habana", GAUDI, ["hl-smi"], "Gaudi3"),
    ("env", GPUS, ["env"], "NVIDIA_VISIBLE_DEVICES=void"),
    ("env of the pod", GPUS, ["printenv", "A"], "1"),
    ("pipes of MPS", MPS, ["env"], f"{PIPES}=/var/run/drayman/mps/u-1/pipe\n"),
    ("tpu", TPU, ["env"], "TPU_TOPOLOGY="),
    ("host", GPUS, ["hostname"], "training-job"),
    ("nodes", GPUS, ["ls", "/dev"], "nvidia3"),
    ("nodes below", AMD, ["ls", "/dev/dri/"], "renderD128"),
    ("nodes of groups", TPU, ["ls", "/dev/vfio"], "0"),
]  # fmt: skip


@pytest.mark.parametrize(("view", "command", "expected"), [row[1:] for row in PRINTED], ids=[row[0] for row in PRINTED])  # fmt: skip
def test_programs_print_what_the_container_has(
    view: Sight, command: list[str], expected: str
) -> None:
    """And succeed."""
    output = run(view, command)
    assert expected in output.text
    assert output.code == 0


REFUSED = [
    ("no devices", NOTHING, ["nvidia-smi"], 127, "no device of gpu.nvidia.com"),
    ("another vendor", AMD, ["hl-smi"], 127, "no device of gaudi.intel.com"),
    ("unknown", GPUS, ["python", "train.py"], 127, "node n is simulated"),
    ("unknown in a shell", GPUS, ["bash", "-c", "python train.py"], 127, "ash, bash, dash, env, hl-smi, hostname"),
    ("end of a shell without one", GPUS, ["exit"], 127, "and exit in a shell"),
    ("pipe", GPUS, ["bash", "-c", "ls /dev | wc"], 2, "bash: | is not simulated: only plain commands, joined by ; or &&, are"),
    ("alternative", GPUS, ["sh", "-c", "env || ls /dev"], 2, "|| is not simulated: only plain"),
    ("redirection", GPUS, ["sh", "-c", "env; ls /dev 2>/dev/null"], 2, "> is not simulated: only plain"),
    ("value of a variable", GPUS, ["sh", "-c", 'printenv A; ls "/dev/$A"'], 2, "$A is not simulated: only plain"),
    ("setting of a variable", GPUS, ["sh", "-c", "A=2 env"], 2, "A=2 is not simulated: only plain"),
    ("loop", GPUS, ["sh", "-c", "for i in 1 2; do env; done"], 2, "for is not simulated: only plain"),
    ("no command", GPUS, ["sh", "-c", "env; ; env"], 2, 'Syntax error: ";" unexpected'),
    ("no end", GPUS, ["sh", "-c", "env &&"], 2, "Syntax error: nothing follows &&"),
    ("long listing", GPUS, ["ls", "-l", "/dev"], 1, "ls: -l is not simulated; -1 is"),
    ("elsewhere", GPUS, ["ls", "/etc"], 2, "simulated for /dev"),
    ("pattern of nothing", GPUS, ["sh", "-c", "ls /dev/kf*"], 2, "cannot access '/dev/kf*': No such file"),
    ("pattern in quotes", GPUS, ["sh", "-c", "ls '/dev/nvidia*'"], 2, "cannot access '/dev/nvidia*'"),
    ("pattern without a shell", GPUS, ["ls", "/dev/nvidia*"], 2, "cannot access '/dev/nvidia*'"),
    ("option", GPUS, ["nvidia-smi", "topo", "-m"], 1, "topo is not simulated"),
    ("field", GPUS, ["nvidia-smi", "--query-gpu=fan", "--format=csv"], 2, '"fan" is not a valid'),
    ("variable", GPUS, ["printenv", "NOPE"], 1, ""),
    ("pipes of slices", shared_gpu("TimeSlicing"), ["printenv", PIPES], 1, ""),
    ("pipes for an onlooker", shared_gpu("MPS", admin_access=True), ["printenv", PIPES], 1, ""),
    ("secret", GPUS, ["printenv", "SECRET"], 1, "come from other objects: SECRET"),
    ("node of another", GPUS, ["ls", "/dev/kfd"], 2, "No such file"),
    ("quotes", GPUS, ["sh", "-c", "ls '"], 2, "Unterminated quoted string"),
]  # fmt: skip


@pytest.mark.parametrize(("view", "command", "code", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])  # fmt: skip
def test_what_is_not_simulated_is_refused(
    view: Sight, command: list[str], code: int, why: str
) -> None:
    """On standard error, with the exit status of a shell."""
    output = run(view, command)
    assert (output.text, output.code) == ("", code)
    assert why in output.error


NODES = ["/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia1", "/dev/nvidia3", "/dev/nvidiactl"]  # fmt: skip
LINES = [
    ("pattern", GPUS, "ls -1 /dev/nvidia*", NODES, 0),
    ("pattern of one", GPUS, "ls /dev/nvidia?", ["/dev/nvidia1", "/dev/nvidia3"], 0),
    ("pattern of a folder", AMD, "ls /d*/dri/render*", ["/dev/dri/renderD128"], 0),
    ("folder", AMD, "ls /dev/dr*", ["card1", "renderD128"], 0),
    ("file and folder", AMD, "ls /dev/kfd /dev/dri", ["/dev/kfd", "", "/dev/dri:", "card1", "renderD128"], 0),
    ("some are there", GPUS, "ls /dev/kfd /dev/nvidia1", ["/dev/nvidia1"], 2),
    ("one after the other", GPUS, "hostname; printenv A", ["training-job", "1"], 0),
    ("on lines", GPUS, "hostname\n\nprintenv A &&\nhostname\n", ["training-job", "1", "training-job"], 0),
    ("the last one counts", GPUS, "nope; hostname;", ["training-job"], 0),
    ("both succeed", GPUS, "hostname && printenv A", ["training-job", "1"], 0),
    ("one fails", GPUS, "printenv NOPE && hostname && hostname", [], 1),
    ("after one that fails", GPUS, "printenv NOPE && hostname; hostname", ["training-job"], 0),
    ("end", GPUS, "hostname; exit 3; hostname", ["training-job"], 3),
    ("end with what was before", GPUS, "nope; exit", [], 127),
    ("a shell ends itself alone", GPUS, "sh -c 'exit 3'; hostname", ["training-job"], 0),
    ("quotes", GPUS, """printenv 'A' "A" \\A; ls /dev/'nvidia'1""", ["1", "1", "1", "/dev/nvidia1"], 0),
    ("what is quoted joins nothing", GPUS, "printenv ';' '&&' '|' '$A' '>'", [], 1),
    ("comment", GPUS, "hostname # ; env | wc", ["training-job"], 0),
    ("nothing", GPUS, "", [], 0),
]  # fmt: skip


@pytest.mark.parametrize(("view", "line", "printed", "code"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])  # fmt: skip
def test_a_shell_runs_plain_commands(view: Sight, line: str, printed: list[str], code: int) -> None:
    """One after the other, with patterns for what the container has; the last one that ran says how the line ends."""
    output = run(view, ["sh", "-c", line])
    assert (lines(output.text), output.code) == (printed, code)


KEYS: Iterable[tuple[str, list[str], tuple[str, list[str], bool]]] = [
    ("a line", ["ls\r"], ("ls\r\n", ["ls"], False)),
    ("in pieces", ["l", "s", "\r"], ("ls\r\n", ["ls"], False)),
    ("corrected", ["lx\x7fs\r"], ("lx\b \bs\r\n", ["ls"], False)),
    ("given up", ["ls\x03"], ("ls^C\r\n", [""], False)),
    ("ended", ["\x04"], ("", [], True)),
    ("not ended within a line", ["l\x04s\r"], ("ls\r\n", ["ls"], False)),
    ("arrows", ["\x1b[Als\x1b[D\r"], ("ls\r\n", ["ls"], False)),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "expected"), [row[1:] for row in KEYS], ids=[row[0] for row in KEYS])  # fmt: skip
def test_keys_become_lines(keys: list[str], expected: tuple[str, list[str], bool]) -> None:
    """And the terminal shows them, because it does not by itself."""
    editor = LineEditor(echoes=True)
    shown, found, is_over = "", [], False
    for each in keys:
        part, complete, is_over = editor.keys(each)
        shown += part
        found += complete
    assert (shown, found, is_over) == expected


def test_a_device_that_is_gone_is_named() -> None:
    """Its driver may have taken it away since."""
    result = DeviceRequestAllocationResult(driver="d", pool="p", device="x-1")
    assert str(SeenDevice("claim", result, Device(name="x-1"))) == "x-1 of d"
