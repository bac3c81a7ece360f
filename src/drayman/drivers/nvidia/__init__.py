"""NVIDIA's GPUs as `gpu.nvidia.com` serves them: whole, divided (MIG), and shared by time slices or MPS.

Hardware is reached through NVML (the optional package `nvidia-ml-py`), sysfs, procfs and NVIDIA's own programs.
"""
