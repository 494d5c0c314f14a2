"""What is kept of past tasks: sufficient statistics, one row a task, that merge exactly."""
