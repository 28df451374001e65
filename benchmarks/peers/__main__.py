"""Run the comparison."""

from benchmarks.peers import main

main()
