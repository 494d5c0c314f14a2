"""Runs the blocks of experiments anywhere, keeps what they return, and reports what came out."""
