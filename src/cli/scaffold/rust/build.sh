#!/bin/sh
# Builds {{name}}.wasm. Needs Rust with the target wasm32-unknown-unknown, or Debian's rustc-web with its sources.
set -eu
cd "$(dirname "$0")"
target=wasm32-unknown-unknown
forebay=${FOREBAY:-forebay}

fail() { echo "build.sh: $*" >&2; exit 1; }

# A linker for Debian's rustc-web, which has none: that of a toolchain of rustup, or of clang.
linker() {
  for linker in "$(rustc --print sysroot)"/lib/rustlib/*/bin/rust-lld wasm-ld $(ls /usr/bin/wasm-ld-* 2>/dev/null); do
    command -v "$linker" && return
  done
  fail "there is no linker for WebAssembly: apt-get install lld"
}

command -v "$forebay" >/dev/null || fail "there is no $forebay in the path; FOREBAY=… names one"
command -v cargo >/dev/null || fail "there is no cargo: install Rust, https://rustup.rs"
if [ -d "$(rustc --print target-libdir --target $target)" ]; then
  cargo build --release --target $target
elif [ -x /usr/bin/rustc ] && [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
  # The standard library is built, too, from the sources of this very compiler.
  linker=$(linker)
  RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker /usr/bin/cargo build \
    --release --target $target -Zbuild-std=std,panic_abort
else
  fail "there is no standard library for $target: rustup target add $target"
fi
"$forebay" plugin build "${CARGO_TARGET_DIR:-target}/$target/release/policy.wasm" --output {{name}}.wasm
