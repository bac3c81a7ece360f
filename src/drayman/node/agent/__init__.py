"""The agent of a real node: registers the machine that it runs on, and runs pods there, their containers as processes.

`running` is the whole node and `pods` drives one pod. What is to happen next is decided by pure functions: `steps`, `status`,
`environment`, `probes.container_health`. The rooms: `processes` that containers are, `probes` and hooks, `volumes`, `devices` that
drivers prepare, and the `api` that the node serves.
"""
