#!/bin/sh
# Builds the component: build.sh OUT.wasm. Needs nothing but `forebay` (FOREBAY names it).
set -eu
${FOREBAY:-forebay} plugin build "$(dirname "$0")/policy.wat" --world picker -o "$1"
