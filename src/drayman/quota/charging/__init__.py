"""What the devices of workloads cost in quota, and why: Kueue's four currencies, without its limitations.

Devices are counted, or measured by a counter that they draw from (MIG memory) or by a capacity that they share out (fractions of a
device); requests for extended resources come to the devices behind them. `DevicePricing` (`pricing`) answers for pod sets from the
classes, templates, claims and slices of a cluster; `read_mappings` (`mapping_rules`) reads what Kueue's Configuration says; `Rules`
(`rules`) says which of Kueue's limits hold. What a price depended on is part of it, so that `PriceDependents` (`waking`) knows whom a
change concerns.
"""
