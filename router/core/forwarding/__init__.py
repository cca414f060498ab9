"""Path of a message: intake, distribution to receivers, queues, settlement.

May import everything of `router.core` but `diagnosis`.
"""
