"""The configurations that drivers take: JSON in claims and classes that is opaque to Kubernetes and has a meaning to one driver only.

Everybody who has to know whether a driver accepts one asks here: the drivers themselves, simulated nodes, `drayman validate`, plans and
explanations. So this is below all of them, and pure.
"""
