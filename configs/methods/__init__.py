"""One module per published method: the file system is the registry."""
