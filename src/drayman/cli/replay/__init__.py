"""`drayman replay`: recorded scenarios of queues, decided by Drayman."""
