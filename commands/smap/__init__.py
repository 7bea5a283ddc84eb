"""smap."""
