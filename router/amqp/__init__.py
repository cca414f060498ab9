"""Wire words: AMQP 1.0 bytes to values and back, without state and without a clock."""
