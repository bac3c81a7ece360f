"""Control groups: how the kernel keeps a container within its limits, and counts what it uses.

What is to be written is decided by pure functions (`limits`, `layout`); `finding` looks where this process may make groups, `groups` makes
and removes them, and `use` reads them.
"""
