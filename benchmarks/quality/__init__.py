"""Out-of-sample cost at default settings: ours against every baseline, cell by cell."""
