#!/usr/bin/env bash
# What `forebay plugin new` makes is made, built and tested, as an author would: in all languages, each way to ask.
#   plugins/scaffold.sh FOREBAY FOLDER              rust and c: compilers as for rebuild.sh
#   plugins/scaffold.sh FOREBAY FOLDER LANGUAGE…    these of rust, c, js, python, as; `manual` runs the manual's chapter
# The compilers of js, python and as are installed into FOLDER, from npm and PyPI.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 2 ] || { sed -n '2,5s/^# //p' "$0"; exit 2; }
FOREBAY=$(realpath "$1")
mkdir -p "$2"
folder=$(cd "$2" && pwd)
shift 2
[ $# -ge 1 ] || set -- rust c
export FOREBAY CARGO_TARGET_DIR="$folder/target" npm_config_update_notifier=false
# As an author has it.
mkdir -p "$folder/bin" && ln -sf "$FOREBAY" "$folder/bin/forebay"
PATH=$folder/bin:$PATH

fail() {
  printf 'scaffold.sh: %s\n' "$@" >&2
  exit 1
}

# One installation for all that are made.
compilers() { # LANGUAGE FOLDER
  case $1 in
    js | as)
      # The folder keeps its name: a package looks for others in `node_modules` only.
      local compiler=$folder/$1-compiler
      if ! [ -d "$compiler/node_modules" ]; then
        mkdir -p "$compiler" && cp "$2/package.json" "$compiler"
        (cd "$compiler" && npm install --no-fund --no-audit --silent) || fail "npm did not install the compiler of $1"
      fi
      ln -sfn "$compiler/node_modules" "$2/node_modules"
      ;;
    python)
      [ -d "$folder/venv" ] || { python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install -q componentize-py==0.25.1; } ||
        fail "pip did not install componentize-py"
      ln -sfn "$folder/venv" "$2/.venv"
      ;;
  esac
}

# What came out, but for the policy's name.
transcript() { sed '1,/^---$/d' "$1/scenarios/first.snap" | sed "s/$(basename "$1")/NAME/g"; }

one() { # LANGUAGE HOOK
  local made="$folder/$1-$2" begun=$SECONDS
  rm -rf "$made"
  forebay plugin new "$made" --lang "$1" --hook "$2" >/dev/null
  compilers "$1" "$made"
  "$made/build.sh" >"$made/build.log" 2>&1 || { cat "$made/build.log"; fail "$1 $2 does not build"; }
  forebay test --accept "$made" >"$made/test.log" || { cat "$made/test.log"; fail "$1 $2: its scenario fails"; }
  for seed in 2 3; do forebay test --seed $seed "$made" >/dev/null || fail "$1 $2: its scenario fails with seed $seed"; done
  forebay check "$made/forebay.toml" >/dev/null || fail "$1 $2: its configuration is refused"
  objects_to_unknown_keys "$made" || fail "$1 $2 takes any key in its configuration"
  # Whatever the language, the same policy.
  first=${first:-}
  [ -z "$first" ] || diff <(transcript "$folder/$first-$2") <(transcript "$made") || fail "$1 $2 decides otherwise than $first"
  printf '%5d s  %9d  %s %s\n' $((SECONDS - begun)) "$(stat -c %s "$made/$(basename "$made").wasm")" "$1" "$2"
}

objects_to_unknown_keys() { # FOLDER
  sed 's/^config = .*//; $a config = { heder = "x-user" }' "$1/forebay.toml" >"$1/wrong.toml"
  ! forebay check "$1/wrong.toml" >/dev/null 2>"$1/wrong.log" && grep -q 'config.heder: unknown' "$1/wrong.log"
}

# The commands of the manual's chapter, as they stand there, each part in an empty folder.
manual() {
  local part chapter="$repository/src/manual/plugins.md"
  for part in Rust JavaScript; do
    rm -rf "$folder/manual" && mkdir "$folder/manual"
    awk -v part="### In $part" '$0 == part { on = 1; next } /^##/ { on = 0 } on' "$chapter" |
      sed -n '/^```sh$/,/^```$/{/^```/!p}' >"$folder/manual/commands"
    [ -s "$folder/manual/commands" ] || fail "the manual has no commands for $part"
    (cd "$folder/manual" && unset CARGO_TARGET_DIR && bash -euxo pipefail commands) || fail "the manual's commands for $part fail"
  done
}

for language in "$@"; do
  case $language in
    manual) manual ;;
    rust | c | js | python | as)
      for hook in plan pick route reuse; do one "$language" "$hook"; done
      first=${first:-$language}
      ;;
    *) fail "there is no language $language: rust, c, js, python, as" ;;
  esac
done
