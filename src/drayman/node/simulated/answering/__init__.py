"""What simulated nodes answer to those who ask for logs and run commands: what a container would see of its devices.

Nothing is executed. Every answer says that it is simulated, and a program that is not known here is refused.
"""
