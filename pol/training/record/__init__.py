"""The learning record: what the recorder publishes while a training runs."""
