"""The messages and services of the protocol.

The `.proto` files say no more than what goes over the wire: package, service and method names, which make up the path of a call, and
field numbers. `python -m drayman.plugins.protocol.generating` writes the modules beside them; a test does it again and compares.
"""
