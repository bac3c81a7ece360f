"""The example driver of Kubernetes SIG Node: devices that any machine has, because they are made up.

It runs through the kit like any other driver, and does nothing to hardware: containers get environment variables that name their devices.
"""
