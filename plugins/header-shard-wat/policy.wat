;; Sends requests with the same key to the same server, and only as many as it can take: `header-shard` by hand. The same
;; configuration, the same choices; what they mean stands in ../header-shard/src/lib.rs and shards.rs.
;;
;; Memory: 0 what is written here and answers · $problems · $servers (seed, inverse, weight: 24 bytes each, 4095 at most)
;; · $floor what the host hands over, which is forgotten when a call ends. A text is a place and a length.
(module
  (import "forebay:policy/request@0.1.0" "hash" (func $hash (param i32) (result i32)))
  (import "forebay:policy/request@0.1.0" "length" (func $length (param i32) (result i32)))
  (import "forebay:policy/servers@0.1.0" "in-flight" (func $in_flight (param i32) (result i32)))
  (import "forebay:policy/servers@0.1.0" "column" (func $column (param i32 i32)))
  (memory (export "memory") 3)
  (global $problems i32 (i32.const 2048))
  (global $servers i32 (i32.const 4096))
  (global $floor i32 (i32.const 102400))
  (global $free (mut i32) (i32.const 102400))

  ;; 16: the answer of `configure`. 40: the choice. 48: a column. 56: the attributes, three texts.
  (data (i32.const 96) "header:x-shard-key")
  ;; The keys, 16 bytes each, and their lengths.
  (data (i32.const 128) "header\00\00\00\00\00\00\00\00\00\00cookie\00\00\00\00\00\00\00\00\00\00query\00\00\00\00\00\00\00\00\00\00\00spill\00\00\00\00\00\00\00\00\00\00\00spill-min")
  (data (i32.const 224) "\06\06\05\05\09")
  (data (i32.const 256) "must be a table")
  (data (i32.const 288) "must be a name without blanks and separators")
  (data (i32.const 352) "must be a number from 1 to 100 with at most three decimals")
  (data (i32.const 416) "must be a whole number from 0 to 1000000")
  (data (i32.const 480) "unknown; the keys are `header`, `cookie`, `query`, `spill`, `spill-min`")
  (data (i32.const 560) "must be a text that is not empty")
  (data (i32.const 608) "!#$%&'*+-.^_`|~")

  ;; Room for what the host hands over.
  (func $room (export "cabi_realloc") (param $old i32) (param $size_before i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (block $fits
      (br_if $fits (i32.le_u (global.get $free) (i32.shl (memory.size) (i32.const 16))))
      (br_if $fits (i32.ne (i32.const -1) (memory.grow
        (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1)))))
      (unreachable))
    (memory.copy (local.get $at) (local.get $old) (local.get $size_before))
    (local.get $at))
  (func $forget (global.set $free (global.get $floor)))

  ;; ---- The configuration: JSON text of texts and numbers, one key after the other.
  (global $at (mut i32) (i32.const 0))
  (global $end (mut i32) (i32.const 0))
  ;; What was read last: a text without its quotes (0), with an escape in it (2), a number (1), anything else (2).
  (global $text (mut i32) (i32.const 0))
  (global $size (mut i32) (i32.const 0))
  (global $kind (mut i32) (i32.const 0))
  (global $wrong (mut i32) (i32.const 0))
  (global $factor (mut i64) (i64.const 1500))
  (global $least (mut i64) (i64.const 8))
  (global $attributes (mut i32) (i32.const 0))

  (func $sign (result i32)
    (if (result i32) (i32.lt_u (global.get $at) (global.get $end))
      (then (i32.load8_u (global.get $at))) (else (i32.const 0))))
  (func $step (global.set $at (i32.add (global.get $at) (i32.const 1))))
  (func $is_blank (param $sign i32) (result i32)
    (i32.or (i32.eq (local.get $sign) (i32.const 32))
            (i32.lt_u (i32.sub (local.get $sign) (i32.const 9)) (i32.const 5))))
  (func $is_digit (param $sign i32) (result i32)
    (i32.lt_u (i32.sub (local.get $sign) (i32.const 48)) (i32.const 10)))
  ;; Passes blanks and that sign.
  (func $take (param $sign i32) (result i32)
    (loop $next (if (call $is_blank (call $sign)) (then (call $step) (br $next))))
    (if (i32.ne (call $sign) (local.get $sign)) (then (return (i32.const 0))))
    (call $step) (i32.const 1))
  ;; What stands between two quotes, the first of which was taken.
  (func $quoted (result i32) (local $begin i32)
    (local.set $begin (global.get $at)) (global.set $kind (i32.const 0))
    (loop $next
      (if (i32.ge_u (global.get $at) (global.get $end)) (then (return (i32.const 0))))
      (if (i32.eq (call $sign) (i32.const 92)) (then (global.set $kind (i32.const 2)) (call $step) (call $step) (br $next)))
      (if (i32.ne (call $sign) (i32.const 34)) (then (call $step) (br $next))))
    (global.set $text (local.get $begin))
    (global.set $size (i32.sub (global.get $at) (local.get $begin)))
    (call $step) (i32.const 1))
  ;; A text, or whatever ends with a comma or a bracket.
  (func $value (result i32) (local $begin i32) (local $depth i32) (local $sign i32)
    (if (call $take (i32.const 34)) (then (return (call $quoted))))
    (local.set $begin (global.get $at))
    (block $done (loop $next
      (local.set $sign (call $sign))
      (br_if $done (i32.ge_u (global.get $at) (global.get $end)))
      (if (i32.eq (local.get $sign) (i32.const 34)) (then
        (call $step) (if (i32.eqz (call $quoted)) (then (return (i32.const 0)))) (br $next)))
      ;; `{` and `[`, `}` and `]`: 0x7b and 0x5b, 0x7d and 0x5d.
      (if (i32.eq (i32.or (local.get $sign) (i32.const 0x20)) (i32.const 0x7b)) (then
        (local.set $depth (i32.add (local.get $depth) (i32.const 1)))))
      (if (i32.eqz (local.get $depth)) (then
        (br_if $done (call $is_blank (local.get $sign)))
        (br_if $done (i32.eq (local.get $sign) (i32.const 44)))
        (br_if $done (i32.eq (local.get $sign) (i32.const 0x7d)))))
      (if (i32.eq (i32.or (local.get $sign) (i32.const 0x20)) (i32.const 0x7d)) (then
        (local.set $depth (i32.sub (local.get $depth) (i32.const 1)))))
      (call $step) (br $next)))
    (global.set $text (local.get $begin))
    (global.set $size (i32.sub (global.get $at) (local.get $begin)))
    (if (i32.or (local.get $depth) (i32.eqz (global.get $size))) (then (return (i32.const 0))))
    (local.set $sign (i32.load8_u (local.get $begin)))
    (global.set $kind (select (i32.const 1) (i32.const 2)
      (i32.or (call $is_digit (local.get $sign)) (i32.eq (local.get $sign) (i32.const 45)))))
    (i32.const 1))
  ;; `12` or `12.5` in units of 10 to the −places; −1 for anything else.
  (func $decimal (param $places i32) (result i64) (local $left i32) (local $number i64) (local $from i32) (local $digits i32)
    (if (i32.ne (global.get $kind) (i32.const 1)) (then (return (i64.const -1))))
    (local.set $from (global.get $text)) (local.set $left (global.get $size))
    (local.set $places (i32.xor (local.get $places) (i32.const -1))) ;; negative before the point
    (loop $next
      (if (call $is_digit (i32.load8_u (local.get $from))) (then
        (local.set $number (i64.add (i64.mul (local.get $number) (i64.const 10))
          (i64.extend_i32_u (i32.sub (i32.load8_u (local.get $from)) (i32.const 48)))))
        (local.set $digits (i32.add (local.get $digits) (i32.const 1)))
        (if (i32.ge_s (local.get $places) (i32.const 0)) (then
          (if (i32.eqz (local.get $places)) (then (return (i64.const -1))))
          (local.set $places (i32.sub (local.get $places) (i32.const 1)))))
        (if (i32.and (i32.lt_s (local.get $places) (i32.const 0)) (i32.gt_u (local.get $digits) (i32.const 9)))
          (then (return (i64.const -1)))))
      (else ;; a point, once, between digits
        (if (i32.or (i32.ne (i32.load8_u (local.get $from)) (i32.const 46)) (i32.ge_s (local.get $places) (i32.const 0)))
          (then (return (i64.const -1))))
        (if (i32.or (i32.eqz (local.get $digits)) (i32.eq (local.get $left) (i32.const 1))) (then (return (i64.const -1))))
        (local.set $places (i32.xor (local.get $places) (i32.const -1)))))
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    (if (i32.lt_s (local.get $places) (i32.const 0)) (then
      (local.set $places (i32.xor (local.get $places) (i32.const -1)))))
    (block $done (loop $next
      (br_if $done (i32.eqz (local.get $places)))
      (local.set $number (i64.mul (local.get $number) (i64.const 10)))
      (local.set $places (i32.sub (local.get $places) (i32.const 1))) (br $next)))
    (local.get $number))
  ;; Whether that sign can stand in a token of RFC 9110.
  (func $is_token (param $sign i32) (result i32) (local $at i32)
    (if (i32.lt_u (i32.sub (i32.or (local.get $sign) (i32.const 32)) (i32.const 97)) (i32.const 26)) (then (return (i32.const 1))))
    (if (call $is_digit (local.get $sign)) (then (return (i32.const 1))))
    (local.set $at (i32.const 608))
    (loop $next
      (if (i32.eq (i32.load8_u (local.get $at)) (local.get $sign)) (then (return (i32.const 1))))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 623))))
    (i32.const 0))

  ;; Something wrong with a key: 64 are shown.
  (func $problem (param $key i32) (param $key_size i32) (param $message i32) (param $size i32) (local $at i32)
    (if (i32.ge_u (global.get $wrong) (i32.const 64)) (then (return)))
    (local.set $at (i32.add (global.get $problems) (i32.shl (global.get $wrong) (i32.const 4))))
    (i32.store (local.get $at) (local.get $key)) (i32.store offset=4 (local.get $at) (local.get $key_size))
    (i32.store offset=8 (local.get $at) (local.get $message)) (i32.store offset=12 (local.get $at) (local.get $size))
    (global.set $wrong (i32.add (global.get $wrong) (i32.const 1))))
  ;; Which of the five keys it is; 5 for none.
  (func $key (param $text i32) (param $size i32) (result i32) (local $which i32) (local $at i32)
    (loop $next
      (local.set $at (i32.const 0))
      (block $other
        (br_if $other (i32.ne (local.get $size) (i32.load8_u offset=224 (local.get $which))))
        (loop $same
          (br_if $other (i32.ne (i32.load8_u (i32.add (local.get $text) (local.get $at)))
            (i32.load8_u offset=128 (i32.add (i32.shl (local.get $which) (i32.const 4)) (local.get $at)))))
          (br_if $same (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (local.get $size))))
        (return (local.get $which)))
      (br_if $next (i32.lt_u (local.tee $which (i32.add (local.get $which) (i32.const 1))) (i32.const 5))))
    (i32.const 5))
  ;; An attribute, `header:` and the name: in the place of that key among the three.
  (func $name (param $which i32) (param $key i32) (param $key_size i32) (local $at i32) (local $place i32)
    (if (i32.or (global.get $kind) (i32.eqz (global.get $size)))
      (then (call $problem (local.get $key) (local.get $key_size) (i32.const 560) (i32.const 32)) (return)))
    (loop $next
      (if (i32.eqz (call $is_token (i32.load8_u (i32.add (global.get $text) (local.get $at)))))
        (then (call $problem (local.get $key) (local.get $key_size) (i32.const 288) (i32.const 44)) (return)))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (global.get $size))))
    (local.set $at (call $room (i32.const 0) (i32.const 0) (i32.const 1)
      (i32.add (i32.add (local.get $key_size) (global.get $size)) (i32.const 1))))
    (memory.copy (local.get $at) (local.get $key) (local.get $key_size))
    (i32.store8 (i32.add (local.get $at) (local.get $key_size)) (i32.const 58))
    (memory.copy (i32.add (i32.add (local.get $at) (local.get $key_size)) (i32.const 1)) (global.get $text) (global.get $size))
    (local.set $place (i32.shl (local.get $which) (i32.const 3)))
    (i32.store offset=56 (local.get $place) (local.get $at))
    (i32.store offset=60 (local.get $place) (i32.add (i32.add (local.get $key_size) (global.get $size)) (i32.const 1))))
  (func $number (param $which i32) (param $key i32) (param $key_size i32) (local $number i64)
    (if (i32.eq (local.get $which) (i32.const 3))
      (then
        (local.set $number (call $decimal (i32.const 3)))
        (if (i64.gt_u (i64.sub (local.get $number) (i64.const 1000)) (i64.const 99000))
          (then (call $problem (local.get $key) (local.get $key_size) (i32.const 352) (i32.const 58)))
          (else (global.set $factor (local.get $number)))))
      (else
        (local.set $number (call $decimal (i32.const 0)))
        (if (i64.gt_u (local.get $number) (i64.const 1000000))
          (then (call $problem (local.get $key) (local.get $key_size) (i32.const 416) (i32.const 40)))
          (else (global.set $least (local.get $number)))))))
  ;; One key and its value. 0 where the table is none.
  (func $setting (result i32) (local $key i32) (local $key_size i32) (local $which i32)
    (if (i32.eqz (call $take (i32.const 34))) (then (return (i32.const 0))))
    (if (i32.eqz (call $quoted)) (then (return (i32.const 0))))
    (local.set $key (global.get $text)) (local.set $key_size (global.get $size))
    (if (i32.eqz (call $take (i32.const 58))) (then (return (i32.const 0))))
    (if (i32.eqz (call $value)) (then (return (i32.const 0))))
    (local.set $which (call $key (local.get $key) (local.get $key_size)))
    (if (i32.eq (local.get $which) (i32.const 5))
      (then (call $problem (local.get $key) (local.get $key_size) (i32.const 480) (i32.const 71)))
      (else (if (i32.lt_u (local.get $which) (i32.const 3))
        (then (call $name (local.get $which) (local.get $key) (local.get $key_size)))
        (else (call $number (local.get $which) (local.get $key) (local.get $key_size))))))
    (i32.const 1))
  (func $settings (result i32)
    (if (i32.eqz (call $take (i32.const 123))) (then (return (i32.const 0))))
    (if (call $take (i32.const 125)) (then (return (i32.const 1))))
    (loop $next
      (if (i32.eqz (call $setting)) (then (return (i32.const 0))))
      (br_if $next (call $take (i32.const 44))))
    (call $take (i32.const 125)))
  ;; Moves the attributes that there are to the front; without any, the default is the one.
  (func $gather (local $from i32)
    (global.set $attributes (i32.const 0))
    (loop $next
      (if (i32.load offset=56 (local.get $from)) (then
        (i64.store offset=56 (i32.shl (global.get $attributes) (i32.const 3)) (i64.load offset=56 (local.get $from)))
        (global.set $attributes (i32.add (global.get $attributes) (i32.const 1)))))
      (br_if $next (i32.lt_u (local.tee $from (i32.add (local.get $from) (i32.const 8))) (i32.const 24))))
    (if (i32.eqz (global.get $attributes)) (then
      (i64.store (i32.const 56) (i64.const 0x1200000060)) ;; 18 bytes at 96
      (global.set $attributes (i32.const 1)))))
  (func (export "forebay:policy/configure@0.1.0#configure") (param i32 i32 i32 i32) (param $config i32) (param $size i32)
    (param i32 i32 i32 i32 i32 i32) (result i32)
    (global.set $at (local.get $config)) (global.set $end (i32.add (local.get $config) (local.get $size)))
    (global.set $wrong (i32.const 0))
    (memory.fill (i32.const 16) (i32.const 0) (i32.const 80))
    (if (i32.eqz (call $settings))
      (then (global.set $wrong (i32.const 0)) (call $problem (i32.const 0) (i32.const 0) (i32.const 256) (i32.const 15))))
    (call $gather)
    (i32.store (i32.const 16) (i32.ne (global.get $wrong) (i32.const 0)))
    (i32.store (i32.const 20) (select (global.get $problems) (i32.const 56) (global.get $wrong)))
    (i32.store (i32.const 24) (select (global.get $wrong) (global.get $attributes) (global.get $wrong)))
    (i32.const 16))
  (func (export "cabi_post_forebay:policy/configure@0.1.0#configure") (param i32) (call $forget))

  ;; ---- The servers.
  (global $count (mut i32) (i32.const 0))
  (global $weight (mut i64) (i64.const 0))

  ;; Spreads every bit over all: the end of SplitMix64.
  (func $mix (param $bits i64) (result i64)
    (local.set $bits (i64.mul (i64.xor (local.get $bits) (i64.shr_u (local.get $bits) (i64.const 30))) (i64.const 0xbf58476d1ce4e5b9)))
    (local.set $bits (i64.mul (i64.xor (local.get $bits) (i64.shr_u (local.get $bits) (i64.const 27))) (i64.const 0x94d049bb133111eb)))
    (i64.xor (local.get $bits) (i64.shr_u (local.get $bits) (i64.const 31))))
  ;; FNV-1a.
  (func $seed (param $at i32) (param $left i32) (result i64) (local $hash i64)
    (local.set $hash (i64.const 0xcbf29ce484222325))
    (block $done (loop $next
      (br_if $done (i32.eqz (local.get $left)))
      (local.set $hash (i64.mul (i64.xor (local.get $hash) (i64.load8_u (local.get $at))) (i64.const 0x100000001b3)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1))) (br $next)))
    (call $mix (local.get $hash)))
  (func $server (param $at i32) (result i32)
    (i32.add (global.get $servers) (i32.mul (local.get $at) (i32.const 24))))
  (func (export "forebay:policy/balance-pick@0.1.0#table") (param $names i32) (param $count i32) (param i32 i32)
    (param $weights i32) (param i32) (param $states i32) (param i32 i32 i32 i32 i32)
    (local $at i32) (local $four i32) (local $server i32) (local $weight i64)
    (global.set $count (local.get $count)) (global.set $weight (i64.const 0))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $at) (local.get $count)))
      (local.set $four (i32.shl (local.get $at) (i32.const 2)))
      (local.set $server (call $server (local.get $at)))
      (i64.store (local.get $server) (call $seed
        (i32.load (i32.add (local.get $names) (i32.shl (local.get $at) (i32.const 3))))
        (i32.load offset=4 (i32.add (local.get $names) (i32.shl (local.get $at) (i32.const 3))))))
      (local.set $weight (i64.const 0))
      (if (i32.eqz (i32.load (i32.add (local.get $states) (local.get $four)))) (then
        (local.set $weight (i64.load32_s (i32.add (local.get $weights) (local.get $four))))))
      (i64.store offset=8 (local.get $server) (i64.div_u (i64.const 0x1000000)
        (select (local.get $weight) (i64.const 1) (i64.gt_s (local.get $weight) (i64.const 1)))))
      (i64.store offset=16 (local.get $server) (local.get $weight))
      (global.set $weight (i64.add (global.get $weight) (local.get $weight)))
      (local.set $at (i32.add (local.get $at) (i32.const 1))) (br $next)))
    (call $forget))

  ;; ---- The choice.
  ;; The requests in flight by index, once they were asked for, and their sum.
  (global $loads (mut i32) (i32.const 0))
  (global $known (mut i32) (i32.const 0))
  (global $total (mut i64) (i64.const 0))
  ;; What was chosen.
  (global $first (mut i32) (i32.const -1))
  (global $second (mut i32) (i32.const -1))

  ;; 64 − log₂ of a number in units of 2⁻³², a straight line between powers of two and the curve above it, divided by the
  ;; weight: the lower, the earlier in the order.
  (func $cost (param $key i64) (param $server i32) (result i64) (local $number i64) (local $zeros i64) (local $part i64)
    (local.set $number (i64.or (i64.const 1) (call $mix (i64.xor (i64.load (local.get $server)) (local.get $key)))))
    (local.set $zeros (i64.clz (local.get $number)))
    (local.set $part (i64.shr_u (i64.shl (i64.shl (local.get $number) (local.get $zeros)) (i64.const 1)) (i64.const 32)))
    (i64.mul (i64.load offset=8 (local.get $server))
      (i64.sub (i64.sub (i64.shl (i64.add (local.get $zeros) (i64.const 1)) (i64.const 32)) (local.get $part))
        (i64.shr_u (i64.mul (i64.const 1409) (i64.shr_u
          (i64.mul (local.get $part) (i64.sub (i64.const 0x100000000) (local.get $part))) (i64.const 32))) (i64.const 12)))))
  ;; So that no product overflows: more than a million in flight is a million.
  (func $load (param $at i32) (result i64) (local $load i32)
    (if (i32.ge_u (local.get $at) (global.get $known)) (then (return (i64.const 0))))
    (local.set $load (i32.load (i32.add (global.get $loads) (i32.shl (local.get $at) (i32.const 2)))))
    (if (i32.lt_s (local.get $load) (i32.const 0)) (then (return (i64.const 0))))
    (i64.extend_i32_u (select (local.get $load) (i32.const 0x100000) (i32.lt_s (local.get $load) (i32.const 0x100000)))))
  (func $is_roomy (param $at i32) (param $weight i64) (result i32) (local $load i64)
    (local.set $load (call $load (local.get $at)))
    (i32.or (i64.lt_s (local.get $load) (global.get $least))
      (i64.le_s
        (i64.mul (i64.mul (i64.add (local.get $load) (i64.const 1)) (global.get $weight)) (i64.const 1000))
        (i64.mul (i64.mul (global.get $factor) (i64.add (global.get $total) (i64.const 1))) (local.get $weight)))))
  ;; The first two in the key's order, or of those that have room.
  (func $best (param $key i64) (param $avoid i32) (param $only_roomy i32)
    (local $at i32) (local $server i32) (local $weight i64) (local $cost i64) (local $least i64) (local $next_least i64)
    (global.set $first (i32.const -1)) (global.set $second (i32.const -1))
    (local.set $least (i64.const -1)) (local.set $next_least (i64.const -1))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $at) (global.get $count)))
      (block $out
        (br_if $out (i32.eq (local.get $at) (local.get $avoid)))
        (local.set $server (call $server (local.get $at)))
        (br_if $out (i64.le_s (local.tee $weight (i64.load offset=16 (local.get $server))) (i64.const 0)))
        (if (local.get $only_roomy) (then
          (br_if $out (i32.eqz (call $is_roomy (local.get $at) (local.get $weight))))))
        (local.set $cost (call $cost (local.get $key) (local.get $server)))
        (if (i64.lt_u (local.get $cost) (local.get $least))
          (then
            (local.set $next_least (local.get $least)) (global.set $second (global.get $first))
            (local.set $least (local.get $cost)) (global.set $first (local.get $at)))
          (else (if (i64.lt_u (local.get $cost) (local.get $next_least)) (then
            (local.set $next_least (local.get $cost)) (global.set $second (local.get $at)))))))
      (local.set $at (i32.add (local.get $at) (i32.const 1))) (br $next))))
  ;; Asks for the requests in flight of all, and adds them up.
  (func $ask_loads (local $at i32)
    (call $column (i32.const 0) (i32.const 48))
    (global.set $loads (i32.load (i32.const 48))) (global.set $known (i32.load (i32.const 52)))
    (global.set $total (i64.const 0))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $at) (global.get $known)))
      (global.set $total (i64.add (global.get $total) (call $load (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 1))) (br $next))))
  (func $choose (param $key i64) (param $avoid i32) (local $first i32) (local $second i32)
    (call $best (local.get $key) (local.get $avoid) (i32.const 0))
    (if (i32.lt_s (global.get $first) (i32.const 0)) (then (return)))
    (if (i64.lt_s (i64.extend_i32_s (call $in_flight (global.get $first))) (global.get $least)) (then (return)))
    (local.set $first (global.get $first)) (local.set $second (global.get $second))
    (call $ask_loads)
    (call $best (local.get $key) (local.get $avoid) (i32.const 1))
    (if (i32.lt_s (global.get $first) (i32.const 0))
      (then (global.set $first (local.get $first)) (global.set $second (local.get $second)) (return)))
    (if (i32.lt_s (global.get $second) (i32.const 0)) (then
      (global.set $second (select (local.get $second) (local.get $first) (i32.eq (global.get $first) (local.get $first)))))))
  ;; The hash of the first attribute that is there and not empty, −1 if none is. The first of all was given, the others
  ;; are asked for.
  (func $key_hash (param $size i32) (result i32) (local $at i32)
    (if (local.get $size) (then (return (call $hash (i32.const 0)))))
    (loop $next
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (if (i32.ge_s (local.get $at) (global.get $attributes)) (then (return (i32.const -1))))
      (br_if $next (i32.le_s (call $length (local.get $at)) (i32.const 0))))
    (call $hash (local.get $at)))
  (func (export "forebay:policy/balance-pick@0.1.0#pick") (param $key i32) (param $size i32) (param $avoid i32) (result i32)
    (local $hash i32)
    (global.set $first (i32.const -1)) (global.set $second (i32.const -1))
    (if (i32.ge_s (local.tee $hash (call $key_hash (local.get $size))) (i32.const 0))
      (then (call $choose (i64.extend_i32_u (local.get $hash)) (local.get $avoid))))
    (i32.store (i32.const 40) (global.get $first)) (i32.store (i32.const 44) (global.get $second))
    (call $forget)
    (i32.const 40)))
