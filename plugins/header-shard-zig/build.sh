#!/bin/sh
# Builds the component: build.sh OUT.wasm [SOURCE.zig]. Needs Zig 0.17 (ZIG names it) and `forebay` (FOREBAY names it).
set -eu
out=$1
here=$(cd "$(dirname "$0")" && pwd)
core=$(mktemp --suffix .wasm)
trap 'rm "$core"' EXIT
${ZIG:-zig} build-exe "$here/${2:-policy.zig}" -target wasm32-freestanding -fno-entry -rdynamic -fstrip -O ReleaseSmall \
  --cache-dir "${TMPDIR:-/tmp}/zig-cache" -femit-bin="$core"
${FOREBAY:-forebay} plugin build "$core" --world picker -o "$out"
