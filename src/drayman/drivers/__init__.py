"""Drivers, and the hardware they describe."""
