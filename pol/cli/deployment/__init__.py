"""``pol deploy`` and documents of deployments."""
