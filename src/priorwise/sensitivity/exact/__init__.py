"""What can be computed by enumeration instead of bounded."""
