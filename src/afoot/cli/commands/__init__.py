"""The commands of the `afoot` program, one module for each command or group of commands."""
