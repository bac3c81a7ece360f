"""The command line. Commands are loaded when they are called, and import what they need inside."""
