"""Management of a running router over AMQP: its `$management` node."""
