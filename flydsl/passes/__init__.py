"""One file per pass, named after the pass; `registry` finds and runs them."""
