"""The manual: options, man pages, completions."""
