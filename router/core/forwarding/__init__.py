"""Path of a message: intake, distribution to receivers, queues, settlement.

This package may import all of `router.core` except `diagnosis`.
"""
