#!/bin/sh
# Makes the files of the catalog tpch again: TPC-H data in Parquet, one file a table, and a manifest of what their
# footers say. `make-tiny.sh` alone writes etc/tpch/tiny (scale 0.01, as Trino's schema tiny);
# `make-tiny.sh 1 /data/tpch/sf1` any other scale, which a catalog with `"location": "/data/tpch"` then has.
set -e
here=$(cd "$(dirname "$0")" && pwd)
scale=${1:-0.01}
target=${2:-$here/tiny}
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet tpchgen-cli==4.0.0
mkdir -p "$target"
"$venv/bin/tpchgen-cli" parquet --scale-factor "$scale" --output-dir "$target" --overwrite
node "$here/write-manifest.mjs" "$target" "$scale"
