#!/bin/sh
# Builds the component: build.sh OUT.wasm. `wasm-component-ld` and `wasm-ld` of rustup must be in the path (see
# ../rebuild.sh, which sees to that); CLANG may name another clang.
set -eu
out=$1
cd "$(dirname "$0")"
objects=$(mktemp -d)
trap 'rm -r "$objects"' EXIT
for source in bindings/picker.c policy.c settings.c shards.c; do
  ${CLANG:-clang-22} --target=wasm32-wasi -Wno-deprecated -std=c17 -Wall -Wextra -Wno-unused-parameter -Os \
    -ffile-prefix-map="$PWD=." -Ibindings -c "$source" -o "$objects/$(basename "$source" .c).o"
done
# A reactor: no main, no WASI. What is not used of the C library is not linked.
wasm-component-ld --wasi-adapter none --no-entry --gc-sections --strip-all \
  "$objects"/*.o bindings/picker_component_type.o -L/usr/lib/wasm32-wasi -lc -o "$out"
