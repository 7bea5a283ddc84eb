"""What a message down a tree of sockets takes: see understudy.tool.fan_out.measure."""
