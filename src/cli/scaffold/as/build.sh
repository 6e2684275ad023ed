#!/bin/sh
# Builds {{name}}.wasm. Needs Node.js with npm, which gets the compiler that package.json names.
set -eu
cd "$(dirname "$0")"
forebay=${FOREBAY:-forebay}

fail() { echo "build.sh: $*" >&2; exit 1; }

command -v "$forebay" >/dev/null || fail "there is no $forebay in the path; FOREBAY=… names one"
if ! [ -x node_modules/.bin/asc ]; then
  command -v npm >/dev/null || fail "there is no npm: install Node.js, https://nodejs.org"
  npm install --no-fund --no-audit
fi
core=$(mktemp)
trap 'rm "$core"' EXIT
node_modules/.bin/asc forebay/{{hook}}.ts --outFile "$core" -O3 --runtime incremental --transform ./forebay/rename.mjs \
  --use abort=forebay/host/aborted --disableWarning 235
"$forebay" plugin build "$core" --world {{world}} --text utf16 --output {{name}}.wasm
