"""sacctmgr: a module for each entity."""
