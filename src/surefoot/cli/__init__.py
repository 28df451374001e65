"""The command line: thin wrappers that call the library and print."""
