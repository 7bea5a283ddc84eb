"""Accounting policy: what associations and qualities of service allow, enforced at submission and
by the schedulers (AccountingStorageEnforce).
"""
