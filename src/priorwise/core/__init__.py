"""Roles, random streams, validation and JSON: what everything else stands on."""
