"""What `understudy compare` does."""
