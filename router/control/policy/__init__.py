"""Policy: which users may connect to which virtual hosts, and what they may do there.

`policy` decides from the configuration alone, `gate` applies the decisions to connections.
"""
