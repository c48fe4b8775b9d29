"""The system of record: what has been received, run, said and shown."""
