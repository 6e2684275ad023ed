#!/usr/bin/env bash
# Rebuilds the plugins into a folder; needs no wasm target of rustup, and no network beyond apt, crates.io, PyPI and npm.
#   plugins/rebuild.sh FOLDER           all of them
#   plugins/rebuild.sh FOLDER NAME…     only these
#   plugins/rebuild.sh --commit         all of them, over the components that are committed beside the sources
# Needs Debian 12, rustup (for cargo's linker), root or sudo if a package is missing, and for AssemblyScript, WAT and Zig a
# `forebay` that packs (FOREBAY names it), python3 and Node 20. See README.md.
set -eu
cd "$(dirname "$0")"
rust_plugins="least-latency peak-ewma header-shard own-first least-cost zone-aware canary tenants preconnect"
rust_plugins+=" tenant-priority adaptive-concurrency"
c_plugins="header-shard-c"
zig_plugins="header-shard-zig"
as_plugins="header-shard-as"
wat_plugins="header-shard-wat"
all="$rust_plugins $c_plugins $zig_plugins $as_plugins $wat_plugins"

fail() {
  printf 'rebuild.sh: %s\n' "$@" >&2
  exit 1
}

installed() { # PACKAGE…
  [ "$(dpkg-query -W -f '${Status}\n' "$@" 2>/dev/null | grep -c 'ok installed')" = $# ]
}

# The compiler and its sources, each of the same version; apt moves them together.
rust_matches() {
  installed rustc-web cargo-web rust-web-src &&
    [ "$(dpkg-query -W -f '${Version}\n' rustc-web cargo-web rust-web-src | sort -u | wc -l)" = 1 ]
}

# Any clang of Debian knows WebAssembly: the newest that is here, or else that apt has.
clang_here() { compgen -c clang- | grep -xE 'clang-[0-9]+' | sort -V | tail -n 1; }
clang_of_apt() { apt-cache search --names-only '^clang-[0-9]+$' | cut -d ' ' -f 1 | sort -V | tail -n 1; }

packages() {
  CLANG=${CLANG:-$(clang_here || true)}
  rust_matches && installed wasi-libc && [ -n "$CLANG" ] && return 0
  local root="" missing=""
  [ "$(id -u)" = 0 ] || root=sudo
  $root apt-get update -qq || fail "apt-get update failed: see above"
  rust_matches || missing+=" rustc-web cargo-web rust-web-src"
  installed wasi-libc || missing+=" wasi-libc"
  if [ -z "$CLANG" ]; then
    CLANG=$(clang_of_apt)
    missing+=" ${CLANG:=clang}"
  fi
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    fail "apt-get could not install$missing" "They are in Debian 12 with bookworm-security; elsewhere see README.md."
  rust_matches || fail "rustc-web, cargo-web and rust-web-src are of different versions:" \
    "$(dpkg-query -W -f '${Package} ${Version}, ' rustc-web cargo-web rust-web-src)" "build-std needs one version."
}

# The folder of rustup's linkers: `wasm-component-ld`, and in `gcc-ld` the `wasm-ld` that it calls.
linkers() {
  local rustc folder
  rustc=$(rustup which rustc 2>/dev/null || command -v rustc) || fail "there is no rustup: see https://rustup.rs"
  folder=$("$rustc" --print sysroot)/lib/rustlib/$("$rustc" -vV | sed -n 's/^host: //p')/bin
  [ -x "$folder/wasm-component-ld" ] || fail "no wasm-component-ld in $folder" "A toolchain of rustup from 1.82 on has it."
  printf '%s' "$folder"
}

# Those of the flags that the compiler knows. They spare bytes: what is left out changes no behaviour.
known() { # FLAG…
  local flag
  for flag in "$@"; do
    if RUSTC_BOOTSTRAP=1 /usr/bin/rustc -Zunstable-options "$flag" --print cfg >/dev/null 2>&1; then
      printf '%s ' "$flag"
    else
      echo "rebuild.sh: this rustc does not know $flag: the components will be larger" >&2
    fi
  done
}

# Debian's compiler with its own sources of the standard library: `build-std` needs the two of one commit. Nobody sees a
# panic's message, so there is none, and no places in it; where there are, they name no path of this machine.
rust() { # FOLDER NAME…
  local folder=$1 name arguments=() flags
  shift
  for name in "$@"; do arguments+=(-p "$name"); done
  flags="-Zunstable-options $(known -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=none)"
  flags+=" --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$PWD=plugins"
  RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags PATH=$PATH:$linkers:$linkers/gcc-ld \
    /usr/bin/cargo build --locked --release --target wasm32-unknown-unknown -Zbuild-std=std,panic_abort \
    -Zbuild-std-features=optimize_for_size --target-dir "$target" "${arguments[@]}" ||
    fail "$(/usr/bin/rustc -V) of apt did not build the Rust plugins; 1.96.0 did." "Either they or this recipe must follow it."
  for name in "$@"; do
    cp "$target/wasm32-unknown-unknown/release/${name//-/_}.wasm" "$folder/$name.wasm"
  done
}

c() { # FOLDER NAME
  CLANG=$CLANG PATH=$PATH:$linkers:$linkers/gcc-ld "$2/build.sh" "$1/$2.wasm" ||
    fail "$CLANG did not build $2; clang-22 did. CLANG=… names another."
}

zig() { # FOLDER NAME
  local tools=$target/tools/zig
  if [ -z "${ZIG:-}" ]; then
    [ -x "$tools/bin/python" ] || python3 -m venv "$tools" || fail "python3 has no venv: apt-get install python3-venv"
    "$tools/bin/pip" install -q --disable-pip-version-check ziglang==0.17.1 || fail "PyPI did not give ziglang 0.17.1."
  fi
  ZIG=${ZIG:-"$tools/bin/python -m ziglang"} "$2/build.sh" "$1/$2.wasm" ||
    fail "Zig did not build $2; 0.17.1 did. ZIG=… names another."
}

assemblyscript() { # FOLDER NAME
  npm install --prefix "$2" --silent --no-audit --no-fund || fail "npm did not give AssemblyScript: see above."
  "$2/build.sh" "$1/$2.wasm" || fail "AssemblyScript did not build $2: see above."
}

wat() { # FOLDER NAME
  "$2/build.sh" "$1/$2.wasm" || fail "forebay did not build $2: see above. FOREBAY=… names it."
}

rebuild() { # FOLDER NAME…
  local folder=$1 name rust_wanted=()
  shift
  for name in "$@"; do
    case " $rust_plugins " in *" $name "*) rust_wanted+=("$name") ;; esac
  done
  [ ${#rust_wanted[@]} = 0 ] || rust "$folder" "${rust_wanted[@]}"
  for name in "$@"; do
    case " $c_plugins " in *" $name "*) c "$folder" "$name" ;; esac
    case " $zig_plugins " in *" $name "*) zig "$folder" "$name" ;; esac
    case " $as_plugins " in *" $name "*) assemblyscript "$folder" "$name" ;; esac
    case " $wat_plugins " in *" $name "*) wat "$folder" "$name" ;; esac
  done
  for name in "$@"; do
    [ -s "$folder/$name.wasm" ] || fail "$name: no such plugin"
    if grep -aqE '/root/|/home/|/tmp/|\.cargo/' "$folder/$name.wasm" || grep -aqF "$PWD" "$folder/$name.wasm"; then
      fail "$name.wasm contains a path of this machine"
    fi
    printf '%7d  %s\n' "$(stat -c %s "$folder/$name.wasm")" "$name.wasm"
  done
}

[ $# -ge 1 ] || { sed -n '2,7s/^# //p' "$0"; exit 2; }
packages
linkers=$(linkers)
target=${CARGO_TARGET_DIR:-$PWD/target}
if [ "$1" = --commit ]; then
  folder=$(mktemp -d)
  # shellcheck disable=SC2086
  rebuild "$folder" $all
  for name in $all; do cp "$folder/$name.wasm" "$name/$name.wasm"; done
  rm -r "$folder"
else
  mkdir -p "$1"
  folder=$(cd "$1" && pwd)
  shift
  # shellcheck disable=SC2086
  [ $# -ge 1 ] || set -- $all
  rebuild "$folder" "$@"
fi
