"""The agent of a real node: registers the machine that it runs on, and runs pods there, their containers as processes.

What is to happen next is decided by pure functions (`steps`, `status`, `environment`); `attempts` are the processes, `claims` the devices
that drivers prepare, `pods` drives one pod, and `running` the whole node.
"""
