#!/usr/bin/env bash
# Rebuilds the plugins into a folder; needs no wasm target of rustup, and no network beyond apt and crates.io.
#   plugins/rebuild.sh FOLDER           all of them
#   plugins/rebuild.sh FOLDER NAME…     only these
#   plugins/rebuild.sh --commit         all of them, over the components that are committed beside the sources
# Needs Debian 12, rustup (for cargo's linker), and root or sudo if a package is missing. See README.md.
set -eu
cd "$(dirname "$0")"
rust_plugins="least-latency header-shard canary own-first"
c_plugins="header-shard-c"

packages() {
  local wanted="rustc-web cargo-web rust-web-src clang-22 wasi-libc" missing="" package
  for package in $wanted; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=" $package"
  done
  [ -z "$missing" ] && return 0
  local root=""
  [ "$(id -u)" = 0 ] || root=sudo
  $root apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing
}

# Debian's compiler with its own sources of the standard library: `build-std` needs the two of one commit. Nobody sees a
# panic's message, so there is none; without the places in it, no path of this machine gets into a component.
rust() { # FOLDER NAME…
  local folder=$1 name arguments=()
  shift
  for name in "$@"; do arguments+=(-p "$name"); done
  local flags="-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=none"
  RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags PATH=$PATH:$linkers:$linkers/gcc-ld \
    /usr/bin/cargo build --locked --release --target wasm32-unknown-unknown -Zbuild-std=std,panic_abort \
    -Zbuild-std-features=optimize_for_size --target-dir "$target" "${arguments[@]}"
  for name in "$@"; do
    cp "$target/wasm32-unknown-unknown/release/${name//-/_}.wasm" "$folder/$name.wasm"
  done
}

c() { # FOLDER NAME
  PATH=$PATH:$linkers:$linkers/gcc-ld "$2/build.sh" "$1/$2.wasm"
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
  done
  for name in "$@"; do
    [ -s "$folder/$name.wasm" ] || { echo "$name: no such plugin" >&2; exit 1; }
    if grep -aqE '/root/|/home/|/tmp/|\.cargo/' "$folder/$name.wasm"; then
      echo "$name.wasm contains a path of this machine" >&2
      exit 1
    fi
    printf '%7d  %s\n' "$(stat -c %s "$folder/$name.wasm")" "$name.wasm"
  done
}

[ $# -ge 1 ] || { sed -n '2,6s/^# //p' "$0"; exit 2; }
packages
linkers=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
target=${CARGO_TARGET_DIR:-$PWD/target}
if [ "$1" = --commit ]; then
  folder=$(mktemp -d)
  # shellcheck disable=SC2086
  rebuild "$folder" $rust_plugins $c_plugins
  for name in $rust_plugins $c_plugins; do cp "$folder/$name.wasm" "$name/$name.wasm"; done
  rm -r "$folder"
else
  mkdir -p "$1"
  folder=$(cd "$1" && pwd)
  shift
  # shellcheck disable=SC2086
  [ $# -ge 1 ] || set -- $rust_plugins $c_plugins
  rebuild "$folder" "$@"
fi
