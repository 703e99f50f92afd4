"""The command line: every command, and the demonstration.

The top room: may import every other one. Nothing imports it but `alertreview.__main__`.
"""
