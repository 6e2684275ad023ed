#!/bin/sh
# Builds the component: build.sh OUT.wasm. Needs Go 1.24 or later (GO names it) and `forebay` (FOREBAY names it).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
core=$(mktemp --suffix .wasm)
trap 'rm "$core"' EXIT
GOOS=wasip1 GOARCH=wasm ${GO:-go} build -C "$here" -buildmode=c-shared -trimpath -ldflags="-s -w" -o "$core" .
${FOREBAY:-forebay} plugin build "$core" --world picker -o "$1"
