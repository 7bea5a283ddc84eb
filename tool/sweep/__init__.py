"""What `understudy sweep` does."""
