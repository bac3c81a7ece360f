"""The command line. Commands are loaded when they are called, and import what they need in their functions."""
