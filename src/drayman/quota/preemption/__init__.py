"""Whom a workload may drive out, and whom it does: classical preemption by priority and nominal quota, and fair sharing by shares."""
