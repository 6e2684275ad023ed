#!/usr/bin/env bash
# A policy with a fault that only time shows: seen by a test, mended, and swapped under load.
#
#   examples/starvation/run.sh             about 25 s; FOREBAY names the program, wrk makes the load
#
# The policy chooses the server that is done first if each goes on as it did lately. One of five servers begins slowly, so
# nobody asks it, so nobody learns that it is fast by now. The exit status is 0 if everything is as this script says.
set -euo pipefail
cd "$(dirname "$0")"
forebay=${FOREBAY:-forebay}
case $forebay in */*) forebay=$(cd "$OLDPWD" && realpath "$forebay") ;; esac
# Short: the path of a Unix socket has its limit.
folder=$(mktemp -d)
started=()

end() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap end EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'NOT AS PROMISED: %s\n' "$*" >&2; exit 1; }

until_there() { # WHAT COMMAND…: at most 10 s
  local what=$1
  shift
  for _ in $(seq 100); do "$@" && return 0; sleep 0.1; done
  fail "$what"
}

test_policy() { # TEXT STATUS: the scenario with this policy
  "$forebay" plugin build --world picker -o least-time.wasm "$1" >/dev/null
  local status=0
  "$forebay" test starvation.toml || status=$?
  [ "$status" = "$2" ] || fail "forebay test ended with $status, not $2"
}

# Requests that each server has had.
served() { curl -fsS "http://$first/served"; }

shares() { # BEFORE AFTER: what came between, in percent; the last line is that of e alone
  awk -v before="$1" -v after="$2" 'BEGIN {
    count = split(before, old, /[ =]/); split(after, new, /[ =]/)
    for (i = 2; i <= count; i += 2) all += part[i] = new[i] - old[i]
    for (i = 2; i <= count; i += 2) printf "  %s %5.1f %%", old[i - 1], 100 * part[i] / all
    printf "\n%.1f\n", 100 * part[count] / all
  }'
}

loaded() { # DIGEST: whether the proxy has said that it loaded this one
  grep -q "a policy has been loaded.*sha256=$1" "$folder/said"
}

cp starvation.toml starvation.snap least-time.wat least-time-floor.wat "$folder"
here=$PWD
cd "$folder"

say "the policy fails its scenario: the server that was slow is never asked again"
test_policy least-time.wat 1 | tee failing
grep -q "failed: app/e has 0\." failing || fail "the expectation about the least share does not fail"

say "mended: now and then any server is asked"
diff -U0 least-time.wat least-time-floor.wat | tail -n +3 || true
test_policy least-time-floor.wat 0
mv least-time.wasm floor.wasm

say "five servers, the faulty policy, and load"
"$forebay" plugin build --world picker -o least-time.wasm least-time.wat
python3 "$here/origins.py" >origins &
started+=($!)
until_there "the servers do not start" grep -q "^e " origins
first=$(awk '/^a / { print $2 }' origins)
cat >forebay.toml <<END
[process]
workers = 2
log = { to = "none" }

[[listen]]
name = "web"
bind = "127.0.0.1:0"
backend = "app"

[backend.app]
balance = { policy = "least-time" }
servers = [$(awk '{ printf "%s{ name = \"%s\", address = \"%s\" }", (NR > 1 ? ", " : ""), $1, $2 }' origins)]

[policy.least-time]
component = "least-time.wasm"
interval = "100ms"
mean-max = "1ms" # a crowded machine is not what is shown
END
"$forebay" run forebay.toml >printed 2>said &
proxy=$!
started+=("$proxy")
until_there "the proxy does not start" grep -q "^listening web " printed
wrk -t1 -c20 -d17s "http://$(awk '/^listening web / { print $3 }' printed)/" >load &
wrk=$!
started+=("$wrk")

sleep 5 # the slow time is over, for three seconds
before=$(served)
sleep 4
shares "$before" "$(served)" >starved
head -n 1 starved

say "the mended one takes its place: a reload, under load"
digest=$(sha256sum floor.wasm | cut -c1-12)
mv floor.wasm least-time.wasm
kill -HUP "$proxy"
until_there "the policy is not swapped: $(tail -n 3 said)" loaded "$digest"
grep "sha256=$digest" said
sleep 3 # it asks e now and then, and learns
before=$(served)
sleep 3
shares "$before" "$(served)" >mended
head -n 1 mended

say "what the clients saw"
wait "$wrk"
cat load
kill -TERM "$proxy"
wait "$proxy" || fail "the proxy ended with $?: $(tail -n 3 said)"
! grep -E "Socket errors|Non-2xx" load || fail "requests failed"
! grep -E " (error|warn) " said || fail "the proxy complains"
awk -v starved="$(tail -n 1 starved)" -v mended="$(tail -n 1 mended)" 'BEGIN { exit !(starved < 1 && mended > 10) }' ||
  fail "e had $(tail -n 1 starved) % before and $(tail -n 1 mended) % after; promised: below 1, above 10"
say "as promised: e had $(tail -n 1 starved) % of the requests before and $(tail -n 1 mended) % after, and none failed"
