"""The tree of cohorts and cluster queues: what each has, lends, may borrow and uses, flavor by flavor and resource by resource."""
