#!/bin/sh
# Builds the component: build.sh OUT.wasm [MODULE]. Needs `componentize-py` 0.25 of PyPI (COMPONENTIZE_PY names it).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# WASI is not stubbed: Forebay closes it, and what Python prints, such as a traceback, becomes lines of its log.
${COMPONENTIZE_PY:-componentize-py} -d "$here/../../wit" -w picker componentize -p "$here" "${2:-policy}" -o "$1"
