#!/bin/sh
# Builds {{name}}.wasm. Needs Node.js with npm, which gets the compiler that package.json names.
set -eu
cd "$(dirname "$0")"
if ! [ -x node_modules/.bin/componentize-qjs ]; then
  command -v npm >/dev/null || { echo "build.sh: there is no npm: install Node.js, https://nodejs.org" >&2; exit 1; }
  npm install --no-fund --no-audit
fi
node_modules/.bin/componentize-qjs --wit wit --world {{world}} --js policy.js --module-root . --sync --minify \
  --output {{name}}.wasm
