"""How long pods run: what is declared about it, and what was observed."""
