"""The operations of live decisions over HTTP, with JSON."""
