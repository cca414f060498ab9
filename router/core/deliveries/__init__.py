"""Rules for single deliveries: credit, redelivery, release, size limits, annotations, outcomes.

Both forwarding and the code that attaches and detaches links use this package. It may import
`model`, `routers` and `addresses` of `router.core`, but not `links`.
"""
