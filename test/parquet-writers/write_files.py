"""Writes one table as Parquet files, by several programs with several settings: `write_files.py FOLDER [NAME…]`.

Each row group of a hundred rows has a few of a column's values, so that bounds and filters rule some groups out; some
groups have only one value, or only NULL.
"""

import datetime
import decimal
import os
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 600
GROUP = 100
NAN = float("nan")
INF = float("inf")


def dec(*texts):
    return [decimal.Decimal(text) for text in texts]


def days(*texts):
    return [datetime.date.fromisoformat(text) for text in texts]


BYTES = [b"", b"\x00", b"'\\", b"abc", b"\x7f", b"\x80", b"caf\xc3\xa9", b"\xab" * 32, b"\xff\xff"]
TEXTS = ["", " ", "'", "A", "a", "ab", "abcdefghijklmnop", "\\x41", "z", "é", "日本", "\U0001f600"]
REALS = [-INF, -3.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.25, 1e20, INF, NAN, 1.0]
MICROS = [-62135596800000000, -1, 0, 1, 951782400000000, 1700000000123456, 253402300799999999]
TIMES = [0, 1, 3723000001, 43200000000, 86399999999]

# Values by column, each in ascending order; `value` adds NULLs. The test has the literals.
COLUMNS = {
    "bo": (pa.bool_(), [False, True]),
    "i8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "i16": (pa.int16(), [-32768, -1, 0, 1, 32767]),
    "i32": (pa.int32(), [-2147483648, -1, 0, 1, 7, 2147483647]),
    "i64": (pa.int64(), [-9223372036854775808, -1, 0, 1, 7, 9223372036854775807]),
    "u8": (pa.uint8(), [0, 1, 127, 128, 255]),
    "u32": (pa.uint32(), [0, 1, 2147483647, 2147483648, 4294967295]),
    "u64": (pa.uint64(), [0, 1, 9223372036854775808, 18446744073709551615]),
    "r": (pa.float32(), REALS),
    "d": (pa.float64(), REALS),
    "d9": (pa.decimal128(9, 2), dec("-9999999.99", "-1.00", "0.00", "0.01", "1.50", "9999999.99")),
    "d18": (pa.decimal128(18, 4), dec("-99999999999999.0000", "-1.0000", "0.0000", "1.5000", "99999999999999.9999")),
    "d38": (pa.decimal128(38, 10), dec("-9999999999999999999999999999.0", "-1.5", "0", "1.5", "9999999999999999999999999999.9")),
    "s": (pa.string(), TEXTS),
    "b": (pa.binary(), BYTES),
    "b16": (pa.binary(16), [b"\x00" * 16, b"0123456789abcdef", b"\x80" * 16, b"\xff" * 16]),
    "dt": (pa.date32(), days("0001-01-01", "1969-12-31", "1970-01-01", "2000-02-29", "2024-02-29", "9999-12-31")),
    "t3": (pa.time32("ms"), [time // 1000 for time in TIMES]),
    "t6": (pa.time64("us"), TIMES),
    "t9": (pa.time64("ns"), [0, 1, 3723000000001, 43200000000000, 86399999999999]),
    "ts3": (pa.timestamp("ms"), [micros // 1000 for micros in MICROS]),
    "ts6": (pa.timestamp("us"), MICROS),
    "ts9": (pa.timestamp("ns"), [-9223372036854774000, -1, 0, 1, 951782400000000000, 1700000000123456789]),
    "tz": (pa.timestamp("us", "UTC"), MICROS),
}


def value(pool, row):
    group = row // GROUP
    if group == 4:
        return pool[len(pool) // 2]
    if group == 5 or row % 11 == 3:
        return None
    # About three values in a group.
    step = max(1, -(-len(pool) // 4))
    return pool[min(len(pool) - 1, group * step + row % step)]


def table():
    columns = {"n": pa.array(range(ROWS), pa.int64())}
    for name, (kind, pool) in COLUMNS.items():
        columns[name] = pa.array([value(pool, row) for row in range(ROWS)], kind)
    ids = [uuid.UUID(int=i * (2**128 // 7)) for i in range(7)]
    texts = [value(ids, row) for row in range(ROWS)]
    columns["u"] = pa.array([text and text.bytes for text in texts], pa.uuid())
    doubles, blobs = columns["d"], columns["b"]
    columns["st"] = pa.StructArray.from_arrays([doubles, blobs], ["d", "b"])
    columns["li"] = pa.array([None if item is None else [item] for item in doubles.to_pylist()], pa.list_(pa.float64()))
    return pa.table(columns)


def without(rows, *names):
    return rows.drop_columns(list(names))


def arrow(**settings):
    def write(rows, path):
        pq.write_table(rows, path, **{"row_group_size": GROUP, "compression": "zstd", **settings})

    return write


DELTAS = {name: "DELTA_BINARY_PACKED" for name in ("n", "i32", "i64", "u32", "dt", "t3", "t6", "ts3", "ts6", "ts9", "tz")}
DELTAS |= {"s": "DELTA_BYTE_ARRAY", "b": "DELTA_LENGTH_BYTE_ARRAY", "b16": "DELTA_BYTE_ARRAY"}


def polars(**settings):
    def write(rows, path):
        import polars as pl

        # Polars has no UUIDs, and texts of fixed length become texts of any length.
        frame = pl.from_arrow(without(rows, "u"))
        frame.write_parquet(path, row_group_size=GROUP, **settings)

    return write


def duckdb(options):
    def write(rows, path):
        import duckdb as engine

        # Row groups of DuckDB have at least 2,048 rows, so each group of rows comes many times.
        own = without(rows, "u64")
        many = pa.concat_tables([own.slice(first, GROUP) for first in range(0, ROWS, GROUP) for _ in range(21)])
        connection = engine.connect(config={"threads": 1})
        connection.register("many", many)
        connection.execute(f"COPY (SELECT * FROM many) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048{options})")

    return write


WRITERS = {
    "arrow-dictionary": arrow(),
    "arrow-plain": arrow(use_dictionary=False),
    "arrow-delta": arrow(use_dictionary=False, column_encoding=DELTAS),
    "arrow-split": arrow(use_dictionary=False, use_byte_stream_split=["r", "d"]),
    "arrow-no-statistics": arrow(write_statistics=False),
    "arrow-page-index": arrow(write_page_index=True, data_page_size=256, write_batch_size=25),
    "arrow-pages-v2": arrow(data_page_version="2.0", data_page_size=256, write_batch_size=25, compression="gzip"),
    "arrow-format-1": lambda rows, path: arrow(version="1.0")(without(rows, "t9", "ts9"), path),
    "arrow-filters": lambda rows, path: arrow(
        bloom_filter_options={name: {"ndv": 20, "fpp": 0.01} for name in COLUMNS if name != "bo"}
    )(rows, path),
    "arrow-whole-decimals": arrow(store_decimal_as_integer=True),
    "arrow-no-schema": arrow(store_schema=False, compression="snappy"),
    "polars-default": polars(),
    "polars-no-statistics": polars(statistics=False),
    "polars-full-statistics": polars(statistics="full", compression="lz4"),
    "polars-small-pages": polars(data_page_size=64, compression="uncompressed"),
    "duckdb-default": duckdb(""),
    "duckdb-delta": duckdb(", PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1, STRING_DICTIONARY_PAGE_SIZE_LIMIT 1"),
    "duckdb-plain": duckdb(", DICTIONARY_SIZE_LIMIT 1, STRING_DICTIONARY_PAGE_SIZE_LIMIT 1"),
    "duckdb-no-filters": duckdb(", WRITE_BLOOM_FILTER false, COMPRESSION gzip"),
    "duckdb-many-filters": duckdb(", BLOOM_FILTER_FALSE_POSITIVE_RATIO 0.0001, COMPRESSION brotli"),
}

if __name__ == "__main__":
    folder, names = sys.argv[1], sys.argv[2:]
    rows = table()
    for name in names or WRITERS:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        WRITERS[name](rows, os.path.join(folder, name, "a.parquet"))
