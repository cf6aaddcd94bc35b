"""The command line: one module a command, arguments in, exit code out."""
