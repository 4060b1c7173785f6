"""Builds the pocket models: tiny chat models that learn on two CPU cores. The package ships only the results."""
