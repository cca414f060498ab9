"""AMQP 1.0 wire codec: octets to values and back, without state and without a clock."""
