"""Furiosa's RNGD cards as `npu.furiosa.ai` serves them.

The vendor's driver is closed: of its attributes only `uuid` is documented, and where the kernel shows it is taken from the vendor's tools.
"""
