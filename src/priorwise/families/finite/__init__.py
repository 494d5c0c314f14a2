"""Finitely many possible tasks."""
