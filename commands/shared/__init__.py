"""What all commands have in common: options, fields, the connection to the controller."""
