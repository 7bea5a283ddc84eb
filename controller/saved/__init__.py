"""What outlives the controller: the state on disk, and how it comes back."""
