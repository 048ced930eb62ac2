"""Code generation targets: each turns lowered IR into something that runs."""
