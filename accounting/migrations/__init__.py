"""The way of the database's schema from one version to the next."""
