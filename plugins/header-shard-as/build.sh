#!/bin/sh
# Builds the component: build.sh OUT.wasm [SOURCE.ts]. Needs `asc`, which `npm install` here fetches (ASC names another), and
# `forebay` (FOREBAY names it).
set -eu
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
forebay=$(command -v "${FOREBAY:-forebay}")
cd "$(dirname "$0")"
core=$(mktemp --suffix .wasm)
trap 'rm "$core"' EXIT
${ASC:-npx --no-install asc} "${2:-policy.ts}" -o "$core" -O3 --converge --runtime incremental --use abort=abi/abort \
  --transform ./contract.mjs
"$forebay" plugin build "$core" --world picker --text utf16 -o "$out"
