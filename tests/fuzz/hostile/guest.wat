;; A guest that does whatever its script says: makes host calls with any numbers, and returns any bytes as its answer.
;;
;; Every hook is given its script as a text: two letters from `a` to `p` for each byte. Bytes are read one after another,
;; as the number of a deed (the table in `script.rs` lists them) or as a number: below 0xE0 it is that byte minus 8, below
;; 0xF0 the next two bytes, else the next four. When they end, the answer is what has been written from $ANSWER on.
;;
;;   256   where host calls put what they return
;;   512   the wishes of a `configure` without a script
;;   4096  the answer, all 0 when a call begins
;;   8192  the script in bytes
;;   32768 the arena of the allocator, as far as memory goes
(module
  (import "forebay:policy/log@0.1.0" "write" (func $log (param i32 i32 i32)))
  (import "forebay:policy/request@0.1.0" "attribute" (func $attribute (param i32 i32)))
  (import "forebay:policy/request@0.1.0" "length" (func $length (param i32) (result i32)))
  (import "forebay:policy/request@0.1.0" "hash" (func $hash (param i32) (result i32)))
  (import "forebay:policy/request@0.1.0" "draw" (func $draw (param i32) (result i32)))
  (import "forebay:policy/request@0.1.0" "now" (func $now (result i64)))
  (import "forebay:policy/servers@0.1.0" "in-flight" (func $in_flight (param i32) (result i32)))
  (import "forebay:policy/servers@0.1.0" "queued" (func $queued (param i32) (result i32)))
  (import "forebay:policy/servers@0.1.0" "idle" (func $idle (param i32) (result i32)))
  (import "forebay:policy/servers@0.1.0" "column" (func $column (param i32 i32)))
  (import "forebay:policy/edits@0.1.0" "set" (func $set (param i32 i32 i32 i32)))
  (import "forebay:policy/edits@0.1.0" "append" (func $append (param i32 i32 i32 i32)))
  (import "forebay:policy/edits@0.1.0" "remove" (func $remove (param i32 i32)))

  (memory (export "memory") 8)
  (global $free (mut i32) (i32.const 32768))
  (global $at (mut i32) (i32.const 8192))
  (global $end (mut i32) (i32.const 8192))
  (global $out (mut i32) (i32.const 4096))
  (global $turns (mut i32) (i32.const 0))
  ;; What the allocator answers instead of doing its work, unless 0.
  (global $nowhere (mut i32) (i32.const 0))

  ;; Two attributes and two headers.
  (data (i32.const 512) "\00\00\00\00\18\02\00\00\02\00\00\00\28\02\00\00\02\00\00\00\00\00\00\00")
  (data (i32.const 536) "\40\02\00\00\0d\00\00\00\50\02\00\00\04\00\00\00")
  (data (i32.const 552) "\60\02\00\00\07\00\00\00\70\02\00\00\01\00\00\00")
  (data (i32.const 576) "header:x-user")
  (data (i32.const 592) "path")
  (data (i32.const 608) "x-shard")
  (data (i32.const 624) "y")

  (func (export "cabi_realloc") (param i32 i32) (param $align i32) (param $size i32) (result i32)
    (local $place i32)
    (if (global.get $nowhere) (then (return (global.get $nowhere))))
    (local.set $place (i32.and (i32.add (global.get $free) (i32.sub (local.get $align) (i32.const 1)))
                               (i32.sub (i32.const 0) (local.get $align))))
    (global.set $free (i32.add (local.get $place) (local.get $size)))
    (local.get $place))

  (func $byte (result i32)
    (if (i32.ge_u (global.get $at) (global.get $end)) (then (return (i32.const 0))))
    (i32.load8_u (global.get $at))
    (global.set $at (i32.add (global.get $at) (i32.const 1))))

  (func $number (result i32)
    (local $first i32)
    (local.set $first (call $byte))
    (if (i32.lt_u (local.get $first) (i32.const 0xE0))
      (then (return (i32.sub (local.get $first) (i32.const 8)))))
    (if (i32.lt_u (local.get $first) (i32.const 0xF0)) (then (return (call $word (i32.const 2)))))
    (call $word (i32.const 4)))

  ;; So many bytes, the lowest first.
  (func $word (param $bytes i32) (result i32)
    (local $word i32) (local $shift i32)
    (loop $more
      (local.set $word (i32.or (local.get $word) (i32.shl (call $byte) (local.get $shift))))
      (local.set $shift (i32.add (local.get $shift) (i32.const 8)))
      (br_if $more (i32.lt_u (local.get $shift) (i32.mul (local.get $bytes) (i32.const 8)))))
    (local.get $word))

  ;; Where the bytes stand that a text in the script is made of, as many as the byte before them says; none of them is read
  ;; as anything else.
  (func $text (result i32 i32)
    (local $size i32) (local $left i32) (local $begin i32)
    (local.set $size (call $byte))
    (local.set $begin (global.get $at))
    (local.set $left (i32.sub (global.get $end) (global.get $at)))
    (if (i32.gt_u (local.get $size) (local.get $left)) (then (local.set $size (local.get $left))))
    (global.set $at (i32.add (global.get $at) (local.get $size)))
    (local.get $begin)
    (local.get $size))

  (func $write (param $number i32)
    (i32.store (global.get $out) (local.get $number))
    (global.set $out (i32.add (global.get $out) (i32.const 4))))

  (func $pair (param $begin i32) (param $size i32)
    (call $write (local.get $begin))
    (call $write (local.get $size)))

  (func $deep (param i32) (result i32)
    (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))

  (func $decode (param $from i32) (param $size i32)
    (local $until i32)
    (global.set $at (i32.const 8192))
    (global.set $end (i32.const 8192))
    ;; No more than fits, and whole pairs only.
    (if (i32.gt_u (local.get $size) (i32.const 16384)) (then (local.set $size (i32.const 16384))))
    (local.set $until (i32.add (local.get $from) (i32.and (local.get $size) (i32.const -2))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $from) (local.get $until)))
        (i32.store8 (global.get $end)
          (i32.or (i32.shl (i32.sub (i32.load8_u (local.get $from)) (i32.const 97)) (i32.const 4))
                  (i32.sub (i32.load8_u offset=1 (local.get $from)) (i32.const 97))))
        (global.set $end (i32.add (global.get $end) (i32.const 1)))
        (local.set $from (i32.add (local.get $from) (i32.const 2)))
        (br $next))))

  ;; Does what the script says; its answer is where the answer of the call stands.
  (func $run (param $script i32) (param $size i32) (result i32)
    (call $decode (local.get $script) (local.get $size))
    (memory.fill (i32.const 4096) (i32.const 0) (i32.const 4096))
    (global.set $out (i32.const 4096))
    (global.set $turns (i32.const 0))
    (global.set $free (i32.const 32768))
    (loop $next
      (if (i32.ge_u (global.get $at) (global.get $end)) (then (return (i32.const 4096))))
      (block $31 (block $30 (block $29 (block $28 (block $27 (block $26 (block $25 (block $24
      (block $23 (block $22 (block $21 (block $20 (block $19 (block $18 (block $17 (block $16
      (block $15 (block $14 (block $13 (block $12 (block $11 (block $10 (block $9 (block $8
      (block $7 (block $6 (block $5 (block $4 (block $3 (block $2 (block $1 (block $0
        (br_table $0 $1 $2 $3 $4 $5 $6 $7 $8 $9 $10 $11 $12 $13 $14 $15
                  $16 $17 $18 $19 $20 $21 $22 $23 $24 $25 $26 $27 $28 $29 $30 $31
          (i32.and (call $byte) (i32.const 31))))
      ;; 0 end
        (return (i32.const 4096)))
      ;; 1 write a number into the answer
        (call $write (call $number)) (br $next))
      ;; 2 write where a place of the answer is
        (call $write (i32.add (call $number) (i32.const 4096))) (br $next))
      ;; 3 go to a place of the answer
        (global.set $out (i32.add (call $number) (i32.const 4096))) (br $next))
      ;; 4 write a byte into the answer
        (i32.store8 (global.get $out) (call $number))
        (global.set $out (i32.add (global.get $out) (i32.const 1))) (br $next))
      ;; 5 write where a text of the script is, and its size
        (call $pair (call $text)) (br $next))
      ;; 6 put a number anywhere
        (i32.store (call $number) (call $number)) (br $next))
      ;; 7 answer what stands anywhere
        (return (call $number)))
      ;; 8 log a text of the script
        (call $log (call $number) (call $text)) (br $next))
      ;; 9 log what stands anywhere
        (call $log (call $number) (call $number) (call $number)) (br $next))
      ;; 10 … 19 ask the host
        (call $attribute (call $number) (i32.const 256)) (br $next))
        (drop (call $length (call $number))) (br $next))
        (drop (call $hash (call $number))) (br $next))
        (drop (call $draw (call $number))) (br $next))
        (call $write (i32.wrap_i64 (call $now))) (br $next))
        (drop (call $in_flight (call $number))) (br $next))
        (drop (call $queued (call $number))) (br $next))
        (drop (call $idle (call $number))) (br $next))
        (call $column (call $number) (i32.const 256)) (br $next))
        (call $write (call $draw (call $number))) (br $next))
      ;; 20, 21 edit with a text of the script
        (call $set (call $number) (call $number) (call $text)) (br $next))
        (call $append (call $number) (call $number) (call $text)) (br $next))
      ;; 22, 23 edit with what stands anywhere
        (call $set (call $number) (call $number) (call $number) (call $number)) (br $next))
        (call $append (call $number) (call $number) (call $number) (call $number)) (br $next))
      ;; 24
        (call $remove (call $number) (call $number)) (br $next))
      ;; 25 all that was done so far, again, as often as it says, 16 each
        (if (i32.lt_u (global.get $turns) (i32.shl (call $byte) (i32.const 4)))
          (then (global.set $turns (i32.add (global.get $turns) (i32.const 1)))
                (global.set $at (i32.const 8192))))
        (br $next))
      ;; 26 more memory
        (drop (memory.grow (call $number))) (br $next))
      ;; 27 an allocator that answers so from now on
        (global.set $nowhere (call $number)) (br $next))
      ;; 28 an arena that goes on there
        (global.set $free (call $number)) (br $next))
      ;; 29, 30, 31 the ways to end; the last, which is slow, only if it says so twice
        (unreachable))
        (return (call $deep (i32.const 0))))
        (br_if $next (i32.ne (call $byte) (i32.const 85)))
        (loop $again (br $again)))
    (unreachable))

  ;; The script of a hook that is shown servers stands in the name of the first.
  (func $first (param $servers i32) (param $count i32) (result i32 i32)
    (if (i32.eqz (local.get $count)) (then (return (i32.const 0) (i32.const 0))))
    (i32.load (local.get $servers))
    (i32.load offset=4 (local.get $servers)))

  (func (export "forebay:policy/configure@0.1.0#configure")
    (param i32 i32 i32 i32) (param $config i32) (param $size i32) (param i32 i32 i32 i32 i32 i32) (result i32)
    (if (i32.eqz (local.get $size)) (then (return (i32.const 512))))
    (call $run (local.get $config) (local.get $size)))
  (func (export "forebay:policy/balance-plan@0.1.0#plan")
    (param i64) (param $servers i32) (param $count i32) (result i32)
    (call $run (call $first (local.get $servers) (local.get $count))))
  (func (export "forebay:policy/reuse-plan@0.1.0#plan")
    (param i64) (param $servers i32) (param $count i32) (result i32)
    (call $run (call $first (local.get $servers) (local.get $count))))
  (func (export "forebay:policy/balance-pick@0.1.0#table")
    (param $names i32) (param $count i32) (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)
    (drop (call $run (call $first (local.get $names) (local.get $count)))))
  (func (export "forebay:policy/balance-pick@0.1.0#pick")
    (param $key i32) (param $size i32) (param i32) (result i32)
    (call $run (local.get $key) (local.get $size)))
  (func (export "forebay:policy/route@0.1.0#route")
    (param i32 i32 i32) (param $path i32) (param $size i32) (param i32 i32 i32 i32 i32 i32) (result i32)
    (call $run (local.get $path) (local.get $size)))
  (func (export "forebay:policy/reuse@0.1.0#prefer")
    (param i32) (param $first i32) (param $size i32) (param i32 i32 i32 i32) (result i32)
    (call $run (local.get $first) (local.get $size)))
  (func (export "forebay:policy/classify@0.1.0#classify")
    (param i32) (param $first i32) (param $size i32) (param i32 i32 i32 i32 i32 i32 i32) (result i32)
    (call $run (local.get $first) (local.get $size)))
  (func (export "forebay:policy/admit@0.1.0#admit")
    (param i32) (param $first i32) (param $size i32) (param i32 i32 i32 i32 i32 i32) (result i32)
    (call $run (local.get $first) (local.get $size))))
