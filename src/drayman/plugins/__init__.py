"""How a node and its drivers talk: the kubelet's plugin protocol and the Container Device Interface.

Both sides use this package: drivers serve the protocol, node agents and tests call it. gRPC costs a tenth of a second to import, so it is
imported by the modules that serve and call, and by nothing else.
"""
