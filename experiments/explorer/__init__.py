"""A run's jobs as a page to explore: packed for the browser, and drawn there."""
