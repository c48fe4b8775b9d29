"""The only way out: every message that people see goes through here, and has a ledger row."""
