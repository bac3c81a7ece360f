"""`drayman defrag`: moves that make room, proposed and carried out."""
