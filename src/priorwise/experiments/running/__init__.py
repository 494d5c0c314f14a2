"""Runs the blocks of experiments anywhere, keeps what they return, and reports what came out."""

from typing import Final, Literal

Where = Literal["local", "dask"]

BLOCKS: Final = "blocks"
"""Directory of finished blocks; no experiment has this name."""
