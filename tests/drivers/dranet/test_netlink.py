"""Netlink itself, in a network of the test's own: what is set on interfaces, what is told of them, and that changes are heard."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from pyroute2 import IPRoute

from drayman.drivers.dranet.driver import NetworkDriver
from drayman.drivers.dranet.links import Change, NetlinkLinks
from drayman.drivers.dranet.netlink import Details, read_details
from drayman.drivers.kit.errors import PrepareError
from drayman.testing import FakeMachine
from drivers.built import claim, prepared
from drivers.dranet.moving import add_interface
from patience import PATIENCE_S

NEW_NETWORK = 0x40000000
"""CLONE_NEWNET."""
LINKS = 0x1
"""RTMGRP_LINK."""


def in_own_network(work: Callable[[], None]) -> None:
    """Work in a thread that has a network of its own, with the interfaces aa and bb, which are joined."""

    def alone() -> None:
        library = ctypes.CDLL(None, use_errno=True)
        if library.unshare(NEW_NETWORK) != 0:
            pytest.skip(f"no network of its own: {os.strerror(ctypes.get_errno())}")
        with IPRoute() as route:
            route.link("add", ifname="aa", kind="veth", peer="bb", address="02:00:00:00:00:0a")
        work()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(alone).result()


def state(name: str) -> tuple[int, str, bool]:
    """MTU, hardware address, and whether an interface is up."""
    with IPRoute() as route:
        (link,) = route.get_links(route.link_lookup(ifname=name)[0])
        return link.get_attr("IFLA_MTU"), link.get_attr("IFLA_ADDRESS"), bool(link["flags"] & 1)


def addresses(name: str) -> tuple[str, ...]:
    told = read_details()[name]
    return (*told.ipv4, *told.ipv6)


CHANGES = {
    "nothing": (Change(), (1500, "02:00:00:00:00:0a", False)),
    "its MTU": (Change(mtu=1400), (1400, "02:00:00:00:00:0a", False)),
    "its hardware address": (Change(mac="02:00:00:00:00:FF"), (1500, "02:00:00:00:00:ff", False)),
    "its state": (Change(up=True), (1500, "02:00:00:00:00:0a", True)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_asked_for_is_set_and_nothing_else(name: str) -> None:
    """Asked for again, nothing is written, which the kernel would announce."""
    change, wanted = CHANGES[name]

    def work() -> None:
        NetlinkLinks().change("aa", change)
        assert state("aa") == wanted
        kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK
        with closing(socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE)) as listening:
            listening.bind((0, LINKS))
            NetlinkLinks().change("aa", change)
            with pytest.raises(BlockingIOError):
                listening.recv(1)
        assert state("aa") == wanted

    in_own_network(work)


def test_addresses_are_compared_by_what_they_mean() -> None:
    """However they are written, they are added once, and removed if they are there."""

    def work() -> None:
        links = NetlinkLinks()
        for add in (
            ("10.0.0.1/24", "fd00::1/64"),
            ("10.0.0.1/24", "FD00:0::0:1/64", "10.0.0.2/32"),
        ):
            links.change("aa", Change(add=add))
        assert addresses("aa") == ("10.0.0.1/24", "10.0.0.2/32", "fd00::1/64")
        for _ in range(2):
            links.change("aa", Change(remove=("fd00:0:0::1/64", "10.0.0.2/32")))
        assert addresses("aa") == ("10.0.0.1/24",)

    in_own_network(work)


@pytest.mark.parametrize("is_up", [True, False])
def test_an_interface_is_renamed_whether_it_is_up_or_not(is_up: bool) -> None:
    """And stays as it was otherwise."""

    def work() -> None:
        links = NetlinkLinks()
        links.change("aa", Change(up=is_up))
        links.change("aa", Change(name="net1", mtu=1400, add=("10.0.0.1/24",)))
        assert state("net1") == (1400, "02:00:00:00:00:0a", is_up)
        assert addresses("net1") == ("10.0.0.1/24",)

    in_own_network(work)


PROBLEMS = {
    "zz": (Change(), "^there is no interface zz on the node$"),
    "aa": (Change(mtu=10**6), "^interface aa: mtu 1000000: Invalid argument$"),
    "bb": (Change(name="aa"), "^interface bb: name aa: File exists$"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_the_kernel_refuses_is_said_with_the_interface(name: str) -> None:
    """And what was wanted of it."""
    change, problem = PROBLEMS[name]

    def work() -> None:
        with pytest.raises(PrepareError, match=problem):
            NetlinkLinks().change(name, change)

    in_own_network(work)


def test_kind_and_addresses_are_told() -> None:
    """Without those that every interface has for its own link, and those of the machine itself."""

    def work() -> None:
        with IPRoute() as route:
            route.link("add", ifname="br7", kind="bridge")
            for name in ("lo", "aa", "bb"):
                route.link("set", index=route.link_lookup(ifname=name)[0], state="up")
        NetlinkLinks().change("aa", Change(add=("169.254.1.1/16", "192.168.1.1/24", "fd00::7/64")))
        assert read_details() == {
            "lo": Details(),
            "br7": Details(kind="bridge"),
            "aa": Details(kind="veth", ipv4=("192.168.1.1/24",), ipv6=("fd00::7/64",)),
            "bb": Details(kind="veth"),
        }

    in_own_network(work)


@pytest.mark.skipif(shutil.which("tc") is None, reason="the program tc is not there")
@pytest.mark.parametrize("hook", ["ingress", "egress"])
def test_programs_that_tc_has_attached_are_told(hook: str) -> None:
    """A classifier without programs does not count."""

    def run(*command: str) -> None:
        done = subprocess.run(["tc", *command], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"tc {' '.join(command)}: {done.stderr.strip()}")

    def work() -> None:
        for name in ("aa", "bb"):
            run("qdisc", "add", "dev", name, "clsact")
        run("filter", "add", "dev", "aa", hook, "bpf", "bytecode", "1,6 0 0 4294967295,")
        told = read_details()
        assert (told["aa"].ebpf, told["bb"].ebpf) == (True, False)

    in_own_network(work)


def test_programs_of_xdp_are_told() -> None:
    """Netlink says so with the interface."""

    def work() -> None:
        program = _load_xdp_program()
        try:
            with IPRoute() as route:
                index = route.link_lookup(ifname="aa")[0]
                route.link("set", index=index, xdp_fd=program)
            assert read_details()["aa"].ebpf
            assert not read_details()["bb"].ebpf
        finally:
            os.close(program)

    in_own_network(work)


def _load_xdp_program() -> int:
    """One that lets everything pass: `return XDP_PASS`. Returns its file descriptor."""
    code = (ctypes.c_ubyte * 16)(*b"\xb7\x00\x00\x00\x02\x00\x00\x00\x95" + bytes(7))
    license_ = ctypes.c_char_p(b"GPL")

    class Load(ctypes.Structure):
        _fields_ = (
            ("type", ctypes.c_uint32),
            ("count", ctypes.c_uint32),
            ("code", ctypes.c_uint64),
            ("license", ctypes.c_uint64),
            ("rest", ctypes.c_ubyte * 104),
        )

    about = Load(6, 2, ctypes.addressof(code), ctypes.cast(license_, ctypes.c_void_p).value)
    number = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine)
    if number is None:
        pytest.skip(f"the number of bpf on {os.uname().machine} is not known here")
    library = ctypes.CDLL(None, use_errno=True)
    made: int = library.syscall(number, 5, ctypes.byref(about), ctypes.sizeof(about))
    if made < 0:
        pytest.skip(f"no programs can be loaded: {os.strerror(ctypes.get_errno())}")
    return made


STEPS: dict[str, Callable[[IPRoute], object]] = {
    "a new link": lambda route: route.link("add", ifname="br8", kind="bridge"),
    "an address": lambda route: route.addr(
        "add", index=route.link_lookup(ifname="br8")[0], address="10.0.0.1", prefixlen=24
    ),
    "a link that goes": lambda route: route.link("del", index=route.link_lookup(ifname="br8")[0]),
}


def test_changes_are_heard_and_reported() -> None:
    """Of links and of addresses, by a driver for this machine."""
    heard: list[str] = []

    def carry_out(step: str) -> None:
        with IPRoute() as route:
            STEPS[step](route)

    async def listen() -> None:
        changed = asyncio.Event()
        driver = NetworkDriver("n")
        driver.on_change(changed.set)
        following = asyncio.create_task(driver.follow())
        await asyncio.sleep(0)
        try:
            for step in STEPS:
                changed.clear()
                await asyncio.to_thread(carry_out, step)
                async with asyncio.timeout(PATIENCE_S):
                    await changed.wait()
                heard.append(step)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    in_own_network(lambda: asyncio.run(listen()))
    assert heard == list(STEPS)


def test_the_driver_sets_up_and_puts_back_what_the_kernel_has(tmp_path: Path) -> None:
    """With netlink on both sides of a pod's life."""

    def work() -> None:
        machine = FakeMachine(tmp_path)
        add_interface(machine, "aa", address="02:00:00:00:00:0a")
        driver = NetworkDriver("n", root=machine.root, details=read_details)
        said = {"interface": {"name": "net1", "mtu": 1400, "addresses": ["10.0.0.1/24"]}}
        wanted = claim(driver, "aa", said=said)
        prepared(driver, wanted)
        assert state("aa")[0] == 1400
        assert addresses("aa") == ("10.0.0.1/24",)
        NetlinkLinks().change("aa", Change(name="net1"))
        machine.path("sys/class/net/aa").rename(machine.path("sys/class/net/net1"))
        driver.unprepare(wanted)
        assert state("aa")[0] == 1500
        assert addresses("aa") == ()

    in_own_network(work)
