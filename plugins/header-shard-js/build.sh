#!/bin/sh
# Builds the component: build.sh OUT.wasm [SOURCE.js]. Needs `componentize-qjs`, which `npm install` here fetches
# (COMPONENTIZE_QJS names another).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
${COMPONENTIZE_QJS:-"$here/node_modules/.bin/componentize-qjs"} --wit "$here/../../wit" --world picker --sync --stub-wasi \
  --minify --module-root "$here" --js "$here/${2:-policy.js}" --output "$1"
