"""The system of record: what has been received, run, said and shown.

Store authors find the contract in `dragoman.store.operations` and `dragoman.store.protocol`.
"""
