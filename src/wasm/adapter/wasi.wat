;; WASI preview 1 for policies, answered within the component: nothing reaches the host, so nothing has to be allowed.
;; Clocks stand still, random numbers repeat, there is no environment and no file, what is printed is swallowed, exit
;; ends the call.
;;
;; Assemble: wat2wasm or wasm-tools parse src/wasm/adapter/wasi.wat -o src/wasm/adapter/wasi.wasm
(module
  (import "env" "memory" (memory 0))
  (global $state (mut i64) (i64.const 88172645463325252))

  ;; Two counts of nothing: arguments, environment.
  (func $none (param $count i32) (param $bytes i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $bytes) (i32.const 0))
    (i32.const 0))
  (func $nothing (param i32 i32) (result i32) (i32.const 0))
  (export "args_sizes_get" (func $none))
  (export "environ_sizes_get" (func $none))
  (export "args_get" (func $nothing))
  (export "environ_get" (func $nothing))

  ;; One second after the beginning of time, for ever.
  (func (export "clock_time_get") (param $id i32) (param $precision i64) (param $time i32) (result i32)
    (i64.store (local.get $time) (i64.const 1000000000))
    (i32.const 0))
  (func (export "clock_res_get") (param $id i32) (param $resolution i32) (result i32)
    (i64.store (local.get $resolution) (i64.const 1000000))
    (i32.const 0))

  ;; xorshift64, a byte at a time.
  (func (export "random_get") (param $to i32) (param $left i32) (result i32)
    (local $x i64)
    (local.set $x (global.get $state))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $left)))
        (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 13))))
        (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 7))))
        (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 17))))
        (i64.store8 (local.get $to) (local.get $x))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br $next)))
    (global.set $state (local.get $x))
    (i32.const 0))

  ;; Everything was written, nowhere.
  (func (export "fd_write") (param $fd i32) (param $from i32) (param $left i32) (param $written i32) (result i32)
    (local $sum i32)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $left)))
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=4 (local.get $from))))
        (local.set $from (i32.add (local.get $from) (i32.const 8)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br $next)))
    (i32.store (local.get $written) (local.get $sum))
    (i32.const 0))

  (func (export "sched_yield") (result i32) (i32.const 0))
  (func (export "proc_exit") (param i32) (unreachable))

  ;; 8: no such descriptor. 52: not supported.
  (func $no_file (param i32) (result i32) (i32.const 8))
  (func $no_file_2 (param i32 i32) (result i32) (i32.const 8))
  (func $no_file_3 (param i32 i32 i32) (result i32) (i32.const 8))
  (func $no_file_4 (param i32 i32 i32 i32) (result i32) (i32.const 8))
  (export "fd_close" (func $no_file))
  (export "fd_fdstat_get" (func $no_file_2))
  (export "fd_fdstat_set_flags" (func $no_file_2))
  (export "fd_filestat_get" (func $no_file_2))
  (export "fd_prestat_get" (func $no_file_2))
  (export "fd_prestat_dir_name" (func $no_file_3))
  (export "fd_read" (func $no_file_4))
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) (i32.const 8))
  (func (export "path_open") (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32) (i32.const 8))
  (func (export "poll_oneoff") (param i32 i32 i32 i32) (result i32) (i32.const 52)))
