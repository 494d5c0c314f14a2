"""One style, every figure."""
