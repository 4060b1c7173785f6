"""The interface that server and activities use (interface.py), and engines behind it: embedded/.

It exports nothing, so that the interface can be imported without an engine.
"""
