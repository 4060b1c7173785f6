"""The embedded engine (host.py): batch-invariant continuous batching of one base model and its policies."""
