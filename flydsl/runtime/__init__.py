"""Devices, launches and caches. Sees artifacts and targets only, no IR."""
