"""What the families with normal laws share."""
