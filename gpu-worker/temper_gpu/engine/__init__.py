"""The interface that server and activities use (interface.py), and behind it the embedded engine (host.py):
batch-invariant continuous batching of one base model and the policies made from it.

It exports nothing, so that the interface can be imported without the embedded engine.
"""
