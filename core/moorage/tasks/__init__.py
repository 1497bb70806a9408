"""The durable task runtime: pure domain on the ports of `moorage.contract` (TASK, BOUND, NOTE)."""
