"""AMQP protocol engine, sans-I/O: octets and time in; deliveries, events and octets out."""
