"""The library comparison: every peer in an environment of its own, none of them a dependency."""

from benchmarks.peers.bench import main

__all__ = ["main"]
