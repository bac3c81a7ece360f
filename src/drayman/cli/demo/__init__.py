"""`drayman demo`: a simulated node, three claims, and what becomes of them."""
