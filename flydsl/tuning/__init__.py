"""Parts of `flydsl.autotune`: configurations, timing, static cost, files."""
