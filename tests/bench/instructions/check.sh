#!/usr/bin/env bash
# Instructions per request of the pure request path (tests/bench/path.rs), counted by callgrind and compared with
# baseline.txt: more than 3 % above is a failure, more than 3 % below asks to lower the baseline.
#   check.sh             builds, counts, compares, prints a table
#   check.sh --accept    the same, then writes what was counted as the new baseline (and says what it replaced)
#   check.sh --annotate SHAPE   shows which functions the instructions of one shape are in
#
# What is counted is (cost of 2N requests − cost of N requests) / N, so loading, set-up and warm-up cancel out. The count
# is reproducible to the instruction as long as the compiler is the same; a new compiler may move it, and then --accept
# belongs into the commit that raises it. It does not depend on the CPU as much as one might fear: valgrind shows every
# guest with AVX2 the same synthetic CPU (no AVX-512, fixed caches), so memcpy of glibc and the SIMD of httparse and
# memchr choose the same code on all of them. A host without AVX2 would choose other code, so it is refused here.
# Environment, random seeds and hash secrets are fixed.
set -eu
cd "$(dirname "$0")/../../.."
here=tests/bench/instructions
requests=4000
tolerance=3

fail() { echo "instructions: $*" >&2; exit 1; }

command -v valgrind >/dev/null || fail "valgrind is not installed"
grep -qw avx2 /proc/cpuinfo || fail "this CPU has no AVX2: its counts cannot be compared with the baseline"

build() {
  cargo build --locked --release --no-default-features --bench instructions --message-format=json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\/instructions-[^"]*\)".*/\1/p'
}

cost() { # SHAPE REQUESTS
  env -i valgrind --tool=callgrind --callgrind-out-file="$scratch/$1.$2" "$program" "$1" "$2" >"$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; exit 1; }
  sed -n 's/^summary: //p' "$scratch/$1.$2"
}

program=$(build)
[ -x "$program" ] || fail "the build gave no program"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ "${1-}" = --annotate ]; then
  cost "$2" "$requests" >/dev/null
  callgrind_annotate --auto=no --threshold=95 "$scratch/$2.$requests" | cut -c 1-160
  exit
fi

verdict=0
printf '# instructions per request; %s\n' "$(rustc --version)" >"$scratch/new"
printf '%-10s %10s %10s %8s\n' shape baseline now change
for shape in $(env -i "$program"); do
  once=$(cost "$shape" "$requests")
  twice=$(cost "$shape" $((2 * requests)))
  now=$(((twice - once) / requests))
  echo "$shape $now" >>"$scratch/new"
  was=$(sed -n "s/^$shape //p" $here/baseline.txt 2>/dev/null || true)
  if [ -z "$was" ]; then
    printf '%-10s %10s %10d %8s  NEW\n' "$shape" - "$now" -
    verdict=1
    continue
  fi
  note=""
  if [ $((now * 100)) -gt $((was * (100 + tolerance))) ]; then note="MORE" verdict=1; fi
  if [ $((now * 100)) -lt $((was * (100 - tolerance))) ]; then note="less: lower the baseline" verdict=1; fi
  change=$(awk "BEGIN { printf \"%+.1f %%\", ($now - $was) * 100 / $was }")
  printf '%-10s %10d %10d %8s  %s\n' "$shape" "$was" "$now" "$change" "$note"
done

if [ "${1-}" = --accept ]; then
  cp "$scratch/new" $here/baseline.txt
  echo "written to $here/baseline.txt"
elif [ $verdict != 0 ]; then
  fail "differs by more than $tolerance % from $here/baseline.txt ($(sed -n 's/^# //p' $here/baseline.txt 2>/dev/null))"
fi
