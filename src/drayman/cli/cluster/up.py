"""`drayman up`: run the embedded cluster."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from drayman.apiserver.instance.folder import Folder, FolderError
from drayman.cli.cluster.admission_file import read_pod_security
from drayman.cli.cluster.background import LABEL, LogSaysMoreError, started_in_background
from drayman.cli.cluster.live import is_wanted, show
from drayman.cli.cluster.log_file import log_to
from drayman.cli.cluster.node_here import NodeHere
from drayman.cli.completing import profile_names
from drayman.cli.errors import UserError, reason
from drayman.cli.node_agent import driver_option, images_option, read_images, warn_of_exposure
from drayman.cli.options import data_dir_option, limit_options, prices_option, waiting_options
from drayman.cli.output import say, to_stdout
from drayman.cli.prices import load_prices
from drayman.cli.progress import gauged
from drayman.placement.schedulers import KAI_SCHEDULER, SERVED
from drayman.questions.which_cluster import folder_of

if TYPE_CHECKING:
    from drayman.apiserver.instance import Instance, Options
    from drayman.apiserver.instance.control_plane import ControlPlane
    from drayman.controllers.quota.source import ConfigurationSource

_log: Final = logging.getLogger(__name__)
_COLLECTOR_THRESHOLDS: Final = (50_000, 20, 100)
_SWITCH_S: Final = 0.0002
"""How long a thread that works on something large keeps the event loop waiting, each time the event loop has waited for a client."""

_EPILOG: Final = """\b
Examples:
  drayman up                            serve until Ctrl-C, state is kept
  drayman up --ephemeral --port 0       keep nothing, any free port: for tests
  drayman up --profile dgx-h100=2       with simulated nodes
  drayman up --node                     pods run on this machine, as processes
  drayman up --node --driver gpu.example.com
  drayman up --detach                   keep running in the background
  export KUBECONFIG=$(drayman kubeconfig --path)
  kubectl get namespaces
  drayman down                          stop it; state is kept
"""


def _switched_on(_context: click.Context, _option: click.Parameter, text: str) -> frozenset[str]:
    """The gates that are on, from what kube-apiserver and others take for `--feature-gates`."""
    from drayman.controllers.features import GATES

    found: dict[str, bool] = {}
    for each in filter(None, text.split(",")):
        name, _, value = each.partition("=")
        if name not in GATES:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(GATES)}")
        if value not in ("true", "false"):
            raise click.BadParameter(f"{name} is either true or false, not {value!r}")
        found[name] = value == "true"
    return frozenset(name for name, is_on in found.items() if is_on)


@click.command(epilog=_EPILOG)
@data_dir_option
@click.option("--ephemeral", is_flag=True, help="Keep everything in memory and nothing on disk.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--kubeconfig",
    "kubeconfig_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write the kubeconfig; other entries of an existing file are kept. Default: kubeconfig in the data directory.",
)
@click.option(
    "--expose",
    is_flag=True,
    help="Allow an address other machines can reach. Anyone who has the token in the kubeconfig"
    " can do everything there.",
)
@click.option(
    "--audit-log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Append a line of JSON for every request.",
)
@click.option(
    "--enable-admission-plugins",
    "plugins",
    type=click.Choice(["OwnerReferencesPermissionEnforcement"]),
    multiple=True,
    help="Admission plug-ins of Kubernetes that are off by default.",
)
@click.option(
    "--admission-control-config-file",
    "admission_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Kubernetes' AdmissionConfiguration, or a PodSecurityConfiguration: the Pod Security Standards of namespaces without labels,"
    " and the users, namespaces and runtime classes that are exempt. Default: namespaces without labels are privileged.",
)
@click.option(
    "--device-guard/--no-device-guard",
    default=None,
    help="Refuse allocations of devices that other claims hold, and changes that take a claim from a"
    " running pod. On by default; off with --no-controllers, as in Kubernetes.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME=COUNT,...",
    shell_complete=profile_names,
    help="Hardware to simulate, such as dgx-h100=4,cpu=2; `drayman profiles` lists the names.",
)
@click.option(
    "--feature-gates",
    "gates",
    callback=_switched_on,
    default="",
    metavar="NAME=true,...",
    help="Features of Kubernetes that are off by default. WorkloadWithJob: the pods of an Indexed Job that"
    " all run at the same time get a PodGroup, so that they start together.",
)
@click.option(
    "--node",
    "with_node",
    is_flag=True,
    help="Make this machine a node: pods run as processes here, and end with the cluster. Where mount namespaces are not"
    " permitted, they can read the data directory, with the administrator's token, and a warning is printed.",
)
@driver_option
@images_option
@click.option("--no-controllers", is_flag=True, help="Serve the API alone.")
@click.option(
    "--queue-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Kueue's Configuration: what waits in queues, how quota is counted and shared. Read again when the file changes, and kept"
    " in the ConfigMap kueue-system/kueue-manager-config. Default: what that ConfigMap says.",
)
@click.option("--no-queues", is_flag=True, help="Leave Kueue's queues to Kueue itself.")
@click.option(
    "--no-kai-scheduler",
    is_flag=True,
    help="Leave pods with `schedulerName: kai-scheduler` to another process.",
)
@click.option("--no-scheduler", is_flag=True, help="Leave scheduling to another process.")
@prices_option
@waiting_options
@limit_options
@click.option(
    "--no-color", is_flag=True, help="Print a few plain lines even on a terminal: no live status."
)
@click.option("--detach", is_flag=True, help="Return as soon as it is ready; it keeps running.")
def up(
    data_dir: Path | None,
    ephemeral: bool,
    host: str,
    port: int,
    kubeconfig_path: Path | None,
    expose: bool,
    audit_log: Path | None,
    plugins: tuple[str, ...],
    admission_file: Path | None,
    device_guard: bool | None,
    gates: frozenset[str],
    with_node: bool,
    driver_names: tuple[str, ...],
    images_path: Path | None,
    no_controllers: bool,
    queue_config: Path | None,
    no_queues: bool,
    no_kai_scheduler: bool,
    no_scheduler: bool,
    profiles: tuple[str, ...],
    prices: str | None,
    binding_timeout: float,
    pod_max_backoff: float,
    max_requests_inflight: int,
    max_watches: int,
    max_sessions: int,
    max_body_memory: int,
    no_color: bool,
    detach: bool,
) -> None:
    """Run a Kubernetes API in this process: no Docker, no etcd. On a terminal, show how it is doing.

    State is kept in the data directory, and a kubeconfig is written there. Plain kubectl and every other Kubernetes client work against it.
    """
    if ephemeral and data_dir is not None:
        raise click.UsageError(
            "--ephemeral keeps nothing, so it cannot be combined with --data-dir"
        )
    if no_controllers:
        given = () if queue_config is None else (str(queue_config),)
        _refuse_for_the_api_alone(
            {"--profile": profiles, "--feature-gates": gates, "--queue-config": given}
        )
    if no_queues and queue_config is not None:
        raise click.UsageError("--no-queues leaves no use for --queue-config")
    if not with_node:
        images_given = () if images_path is None else (str(images_path),)
        _refuse_without_a_node({"--driver": driver_names, "--images": images_given})
    # Before anything is started: a file that makes no sense is refused at once.
    images = read_images(images_path) if with_node else None
    pod_security = read_pod_security(admission_file)
    if with_node:
        warn_of_exposure()
    queues = None if no_queues or no_controllers else _queues(queue_config)
    if detach:
        _detach(folder_of(data_dir), ephemeral)
        return
    with ExitStack() as stack:
        folder = folder_of(data_dir)
        if not ephemeral:
            _refuse_running(folder)
        else:
            folder = Folder(
                Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drayman-")))
            )
        # Before the server is loaded, which takes longer than refusing.
        stack.enter_context(_prepared(folder))
        _start_log(None if ephemeral else folder.log)
        from drayman.apiserver.instance import Options
        from drayman.apiserver.protocol import limits, totals
        from drayman.cli.file_limits import raise_file_limit

        raise_file_limit()
        parts = None
        if not no_controllers:
            served = frozenset() if no_scheduler else SERVED
            if no_kai_scheduler:
                served -= {KAI_SCHEDULER}
            parts = _control_plane(
                served, profiles, prices, binding_timeout, pod_max_backoff, gates, queues
            )
        target = kubeconfig_path.absolute() if kubeconfig_path is not None else None
        options = Options(
            folder,
            durable=not ephemeral,
            host=host,
            port=port,
            kubeconfig=target,
            audit_log=audit_log,
            enforce_owner_permissions=bool(plugins),
            pod_security=pod_security,
            guard_devices=not no_controllers if device_guard is None else device_guard,
            limits=limits.ServerLimits(
                requests=limits.shares_of(totals.REQUESTS, max_requests_inflight),
                watches=limits.shares_of(totals.WATCHES, max_watches),
                sessions=limits.shares_of(totals.SESSIONS, max_sessions),
                body_bytes=limits.shares_of(totals.BODIES, max_body_memory),
            ),
            control_plane=parts,
        )
        _refuse_unknown(host)
        if not options.is_loopback and not expose:
            raise UserError(
                f"{host} can be reached by other machines, and anyone who has the token can do everything;"
                " use --expose if that is intended"
            )
        if images is not None:
            node = NodeHere(images, driver_names, ephemeral)
            options = replace(options, beside=partial(node.running, options))
        asyncio.run(_serve(options, stack, is_live=is_wanted(no_color)))
    say("stopped")


def _start_log(path: Path | None) -> None:
    """Raises UserError."""
    try:
        log_to(path)
    except OSError as error:
        raise UserError(f"{path}: {reason(error)}") from error


def _refuse_for_the_api_alone(options: Mapping[str, Collection[str]]) -> None:
    """Refuse options for parts that do not run."""
    for option, given in options.items():
        if given:
            raise click.UsageError(
                f"--no-controllers serves the API alone, so it cannot be combined with {option}"
            )


def _refuse_without_a_node(options: Mapping[str, Collection[str]]) -> None:
    """Refuse options for the node that does not run."""
    for option, given in options.items():
        if given:
            raise click.UsageError(f"{option} needs --node, which makes this machine a node")


def _refuse_unknown(host: str) -> None:
    """Raises UserError for a name that nobody knows, whose address cannot be said to be reached by others."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is no name of a machine"
        raise UserError(f"--host: {host!r} has no address: {why}") from error


def _control_plane(
    names: frozenset[str],
    profiles: tuple[str, ...],
    prices: str | None,
    binding_timeout: float,
    pod_max_backoff: float,
    gates: frozenset[str],
    queues: ConfigurationSource | None,
) -> ControlPlane:
    from drayman.apiserver.instance.control_plane import ControlPlane
    from drayman.controllers.features import ControllerFeatures
    from drayman.drivers.profiles import ProfileError, parse_profiles, simulate
    from drayman.scheduler.options import SchedulerOptions

    try:
        hardware = simulate(parse_profiles(profiles)) if profiles else None
    except ProfileError as error:
        raise UserError(str(error)) from error
    scheduler = None
    if names:
        scheduler = SchedulerOptions(
            names=names,
            binding_timeout_s=binding_timeout,
            longest_backoff_s=pod_max_backoff,
            prices=load_prices(prices),
        )
    features = ControllerFeatures.from_gates(gates)
    return ControlPlane(scheduler, hardware, features, queues)


def _queues(path: Path | None) -> ConfigurationSource:
    """Raises UserError where the file makes no sense."""
    from drayman.controllers.quota.configuration import ConfigurationFileError
    from drayman.controllers.quota.source import ConfigurationSource

    if path is None:
        return ConfigurationSource()
    try:
        return ConfigurationSource.of_file(path)
    except (ConfigurationFileError, OSError) as error:
        raise UserError(str(error)) from error


def _refuse_running(folder: Folder) -> None:
    """Raises UserError if a cluster runs there. The store's lock would refuse a second one, but does not know the first one's address."""
    running = folder.running()
    if running is not None:
        raise UserError(
            f"{folder.path} is in use by process {running.pid}, which serves {running.url};"
            " stop it with `drayman down`, or start another cluster with --data-dir DIR --port 0"
        )


@contextmanager
def _prepared(folder: Folder) -> Iterator[None]:
    """Make the directory. If it is new and the cluster does not start, it is removed again.

    A UserError always means that: nothing raises one once the cluster has started.
    """
    is_new = not folder.path.exists()
    try:
        folder.prepare()
    except FolderError as error:
        raise UserError(str(error)) from error
    try:
        yield
    except UserError as error:
        if is_new and not isinstance(error, LogSaysMoreError):
            shutil.rmtree(folder.path, ignore_errors=True)
        raise


async def _serve(options: Options, until: ExitStack, *, is_live: bool) -> None:
    """Serve until a signal arrives. `until`, and with it the display, ends after everything else."""
    begun = time.monotonic()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    instance = await _started(options, stop)
    if instance is None:
        return
    _relax_collector()
    sys.setswitchinterval(_SWITCH_S)
    try:
        _log.info("%s is ready", instance.url)
        if is_live:
            await show(instance, stop, until)
        else:
            _print_ready(instance, time.monotonic() - begun)
            await stop.wait()
    finally:
        await instance.stop()


async def _started(options: Options, stop: asyncio.Event) -> Instance | None:
    """The instance once it is ready; None if it is to stop before. Raises UserError."""
    from drayman.apiserver.instance import AddressTakenError, InstanceError, start

    with gauged(LABEL) as gauge:
        starting = asyncio.create_task(start(options, gauge.update))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
            return await starting
        except asyncio.CancelledError:
            return None
        except AddressTakenError as error:
            raise UserError(
                f"{error}; choose another port with --port, or any with --port 0"
            ) from error
        except InstanceError as error:
            raise UserError(str(error)) from error
        finally:
            stopping.cancel()


def _relax_collector() -> None:
    """Look for garbage in cycles less often.

    API objects are trees, which are freed without the collector; a busy server makes tens of thousands of them a second, and the collector
    would repeatedly walk all of memory to find next to nothing. That takes five to eight per cent of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTOR_THRESHOLDS)


def _print_ready(instance: Instance, seconds: float) -> None:
    options = instance.options
    state = str(options.folder.path) if options.durable else "in memory only"
    to_stdout(f"Kubernetes API  {instance.url}  (ready in {seconds:.1f} s)")
    to_stdout(f"state           {state}")
    _print_found(instance.found)
    to_stdout(f"kubeconfig      {instance.kubeconfig}")
    to_stdout(f"try             kubectl --kubeconfig {instance.kubeconfig} get namespaces")
    sys.stdout.flush()


def _print_found(found: str) -> None:
    if found:
        to_stdout(f"found           {found} from an earlier run")


def _detach(folder: Folder, ephemeral: bool) -> None:
    """Start the same command without --detach in its own session, and wait until it is ready."""
    if ephemeral:
        raise click.UsageError(
            "--detach needs a data directory to be found again; leave out --ephemeral"
        )
    _refuse_running(folder)
    arguments = [word for word in sys.argv[1:] if word != "--detach"]
    with _prepared(folder):
        record = started_in_background(folder, arguments)
    to_stdout(f"Kubernetes API  {record.url}  (process {record.pid})")
    _print_found(record.found)
    to_stdout(f"kubeconfig      {record.kubeconfig}")
    to_stdout(f"log             {folder.log}")
