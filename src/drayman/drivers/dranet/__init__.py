"""Network interfaces as `dra.net` (DRANET) serves them.

Interfaces are found in sysfs, and netlink tells what is not there. They get into the network of a pod by the `netDevices` of CDI 1.1,
which container runtimes carry out; what is to be set on them is set before, by netlink (the optional package `pyroute2`).
"""
