#!/bin/sh
# Builds {{name}}.wasm. Needs componentize-py, in the path or in a virtual environment of this folder.
set -eu
cd "$(dirname "$0")"
PATH=$PWD/.venv/bin:$PATH
command -v componentize-py >/dev/null || {
  echo "build.sh: there is no componentize-py: python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1" >&2
  exit 1
}
componentize-py --wit-path wit --world {{world}} componentize policy --output {{name}}.wasm
