"""Temper's GPU worker: engine, trainer and HTTP server as a library, and a thin Temporal worker on top."""
