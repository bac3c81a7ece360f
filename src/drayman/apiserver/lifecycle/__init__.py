"""What happens to objects because of others: garbage collection by owner, and the end of namespaces."""

from drayman.apiserver.lifecycle.running import Lifecycle

__all__ = ["Lifecycle"]
