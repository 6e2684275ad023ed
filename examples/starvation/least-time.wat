;; least-time: the server that is done first if each goes on as it did lately, that is, the smallest product of its
;; latency and the requests it would have. A server that was slow once is not asked, so nobody learns that it got better.
;;
;; Memory: answers at 64, states at 1024, latencies at 2048 (256 servers, 4 bytes each), arguments from 8192 on.
(module
  (import "forebay:policy/servers@0.1.0" "in-flight" (func $in_flight (param i32) (result i32)))
  (memory (export "memory") 16)
  (global $free (mut i32) (i32.const 8192))
  (global $count (mut i32) (i32.const 0))

  ;; Arguments lie one behind the other; each call starts anew.
  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.sub (local.get $align) (i32.const 1)))
                            (i32.sub (i32.const 0) (local.get $align))))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.get $at))

  ;; Any configuration will do, and no attribute is wanted: nothing but zeros, which lie at 0.
  (func (export "forebay:policy/configure@0.1.0#configure")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (i32.const 0))

  (func (export "forebay:policy/balance-pick@0.1.0#table")
    (param $names i32) (param i32) (param $zones i32) (param i32) (param $weights i32) (param i32)
    (param $states i32) (param i32) (param $limits i32) (param i32) (param $latencies i32) (param $count i32)
    (global.set $free (i32.const 8192))
    (global.set $count (select (local.get $count) (i32.const 256) (i32.lt_u (local.get $count) (i32.const 256))))
    (memory.copy (i32.const 1024) (local.get $states) (i32.mul (global.get $count) (i32.const 4)))
    (memory.copy (i32.const 2048) (local.get $latencies) (i32.mul (global.get $count) (i32.const 4))))

  (func (export "forebay:policy/balance-pick@0.1.0#pick")
    (param $key i32) (param $key_size i32) (param $avoid i32) (result i32)
    (local $at i32) (local $best i32) (local $time i64) (local $least i64)
    (global.set $free (i32.const 8192))
    (local.set $best (i32.const -1))
    (local.set $least (i64.const 0x7fff_ffff_ffff_ffff))
    (loop $servers
      (if (i32.lt_s (local.get $at) (global.get $count))
        (then
          (local.set $time (call $time (local.get $at)))
          (if (i32.and (call $may_be_asked (local.get $at) (local.get $avoid))
                       (i64.lt_s (local.get $time) (local.get $least)))
            (then (local.set $best (local.get $at)) (local.set $least (local.get $time))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $servers))))
    (call $answer (local.get $best)))

  (func $may_be_asked (param $server i32) (param $avoid i32) (result i32)
    (i32.and (i32.eqz (i32.load offset=1024 (i32.mul (local.get $server) (i32.const 4))))
             (i32.ne (local.get $server) (local.get $avoid))))

  ;; A server of which nothing is known counts as fast.
  (func $time (param $server i32) (result i64)
    (local $latency i32)
    (local.set $latency (i32.load offset=2048 (i32.mul (local.get $server) (i32.const 4))))
    (i64.mul
      (i64.extend_i32_s (select (local.get $latency) (i32.const 1) (i32.gt_s (local.get $latency) (i32.const 1))))
      (i64.extend_i32_s (i32.add (call $in_flight (local.get $server)) (i32.const 1)))))

  ;; This server, and nobody else.
  (func $answer (param $server i32) (result i32)
    (i32.store (i32.const 64) (local.get $server))
    (i32.store (i32.const 68) (i32.const -1))
    (i32.const 64)))
