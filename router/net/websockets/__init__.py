"""AMQP over WebSockets (OASIS WebSocket Binding 1.0 CS01).

Import these modules only where WebSockets are used: the library takes time and memory.
"""
