"""`make proof`: what is promised, tried so often that luck does not help; see bench/proof.md."""
