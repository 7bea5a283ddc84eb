"""Messages, connections and the forwarding tree."""
