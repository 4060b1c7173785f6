"""The pocket model: a tiny chat model that learns for real on two CPU cores, and the recipe that made it."""
