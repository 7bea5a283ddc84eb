"""Who is who: keys, the challenge that opens connections, the credential agent, job credentials."""
