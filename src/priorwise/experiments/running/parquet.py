"""Tables as Parquet files: the same table gives the same bytes, and what is read back has the types
that were written.
"""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.figures.tables import Table


def to_parquet(name: str, table: Table, about: Mapping[str, Any]) -> bytes:
    """Return the content of a table's file; ``about`` goes into its metadata, as JSON under
    ``priorwise``.
    """
    import pyarrow as pa
    from pyarrow import parquet

    columns = {column: np.asarray(values) for column, values in table.items()}
    known = {each.shape for each in columns.values()}
    if len(known) != 1 or len(known.pop()) != 1:
        shapes = ", ".join(f"{column} {each.shape}" for column, each in columns.items())
        raise ArgumentError(f"{name}", "must have columns of one length", got=shapes)
    arrow = pa.table({column: _column(values) for column, values in columns.items()})
    arrow = arrow.replace_schema_metadata({"priorwise": json.dumps(dict(about), sort_keys=True)})
    buffer = io.BytesIO()
    parquet.write_table(arrow, buffer, compression="zstd")
    return buffer.getvalue()


def _column(values: Any) -> Any:
    import pyarrow as pa

    if values.dtype.kind != "U":
        return pa.array(values)
    # Arrow turns few words to strings much faster than many
    words, index = np.unique(values, return_inverse=True)
    return pa.DictionaryArray.from_arrays(
        pa.array(index.astype(np.int32)), pa.array(words, pa.string())
    ).cast(pa.string())


def read_parquet(path: Path) -> Table:
    """Read a table; words come back as NumPy strings."""
    import pyarrow as pa
    from pyarrow import parquet

    text = [field.name for field in parquet.read_schema(path) if pa.types.is_string(field.type)]
    arrow = parquet.ParquetFile(path, read_dictionary=text).read().combine_chunks()
    out: Table = {}
    for name in arrow.column_names:
        column = arrow.column(name).combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        if name in text:
            words = np.array(column.dictionary.to_pylist(), dtype=str)
            out[name] = words[column.indices.to_numpy()]
        else:
            out[name] = column.to_numpy(zero_copy_only=False)
    return out
