"""Command-line tools: `flydsl --help`."""
