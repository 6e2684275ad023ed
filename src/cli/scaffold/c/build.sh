#!/bin/sh
# Builds {{name}}.wasm. Needs a clang with a C library for WebAssembly: of Debian, or the WASI SDK (WASI_SDK_PATH).
set -eu
cd "$(dirname "$0")"
forebay=${FOREBAY:-forebay}
[ -z "${WASI_SDK_PATH:-}" ] || CLANG=${CLANG:-$WASI_SDK_PATH/bin/clang}
for clang in ${CLANG:-clang} $(ls /usr/bin/clang-[0-9]* 2>/dev/null | sort -rV); do
  command -v "$clang" >/dev/null && break
done
# The linker that each toolchain of rustup brings, or any other; else clang looks for its own.
if command -v rustc >/dev/null; then PATH=$PATH:$(echo "$(rustc --print sysroot)"/lib/rustlib/*/bin/gcc-ld); fi
linker=$(command -v wasm-ld) || linker=

fail() { echo "build.sh: $*" >&2; exit 1; }

command -v "$forebay" >/dev/null || fail "there is no $forebay in the path; FOREBAY=… names one"
echo '#include <stdlib.h>' | "$clang" --target=wasm32-wasi -Wno-deprecated -fsyntax-only -xc - 2>/dev/null ||
  fail "no clang with a C library for WebAssembly: apt-get install clang lld wasi-libc, or CLANG=…"
core=$(mktemp)
trap 'rm "$core"' EXIT
# Neither a main nor builtins: what is not used of the C library is not linked.
"$clang" --target=wasm32-wasi -Wno-deprecated -std=c17 -Wall -Wextra -Wno-unused-parameter -Os -nodefaultlibs \
  -nostartfiles policy.c support.c bindings/{{world}}.c bindings/{{world}}_component_type.o -lc \
  -Wl,--no-entry,--gc-sections,--strip-debug ${linker:+"-fuse-ld=$linker"} -o "$core"
"$forebay" plugin build "$core" --output {{name}}.wasm
