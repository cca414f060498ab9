"""The `$management` node: what a running router tells of itself over AMQP."""
