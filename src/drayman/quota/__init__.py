"""Device quota as Kueue has it: queues, cohorts, flavors and workloads, and who gets what. Pure: time is passed in, decisions come out."""
