"""What is kept of past tasks: sufficient statistics, one row per task, that merge exactly."""
