"""The command line of dragoman: one module per command."""
