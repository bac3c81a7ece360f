"""SPDY/3.1: many streams in one connection. The protocol alone, as bytes and values; whoever has a connection feeds it.

Kubernetes uses it to forward ports, and for the commands of older clients. It is smaller than what the specification has: there are no
pushed streams, priorities or credentials.
"""
