"""Who is out there, and where addresses lead: what decides, beside the way of the messages."""
