"""Questions about queues: who has quota, why others wait, when they may start, and what would help. The engine of quota answers."""
