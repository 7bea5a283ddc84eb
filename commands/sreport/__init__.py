"""sreport."""
