"""The trainer: recorded attempts in, one committed optimizer step out. Knows nothing of Temporal."""
