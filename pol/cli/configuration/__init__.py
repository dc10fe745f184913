"""The verb that shows and sets what other verbs take from files."""
