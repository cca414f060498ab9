"""One peer, sans-I/O: octets and the time go in; deliveries, events and octets come out."""
