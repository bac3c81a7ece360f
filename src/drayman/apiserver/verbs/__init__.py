"""What a call does: read, watch, create, update, patch, delete, one object or several in one transaction."""
