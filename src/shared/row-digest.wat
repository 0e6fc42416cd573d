;; Digest of the rows of a result page: SipHash-2-4 of each row's bytes, summed modulo 2^64, and chained in their order.
(module
  (memory (export "memory") 1)
  ;; Its first 16 bytes are what is chained.
  ;; The key, as SipHash's initial state has it.
  (global $k0 (mut i64) (i64.const 0))
  (global $k1 (mut i64) (i64.const 0))
  (global $sum (export "sum") (mut i64) (i64.const 0))
  (global $chain (export "chain") (mut i64) (i64.const 0))

  (func (export "setKey") (param $low i64) (param $high i64)
    (global.set $k0 (local.get $low))
    (global.set $k1 (local.get $high)))

  ;; Of `length` bytes at `at`; up to seven bytes behind them are read and left out.
  (func $hash (param $at i32) (param $length i32) (result i64)
    (local $v0 i64) (local $v1 i64) (local $v2 i64) (local $v3 i64)
    (local $word i64) (local $last i32) (local $rounds i32)
    (local.set $v0 (i64.xor (global.get $k0) (i64.const 0x736f6d6570736575)))
    (local.set $v1 (i64.xor (global.get $k1) (i64.const 0x646f72616e646f6d)))
    (local.set $v2 (i64.xor (global.get $k0) (i64.const 0x6c7967656e657261)))
    (local.set $v3 (i64.xor (global.get $k1) (i64.const 0x7465646279746573)))
    (local.set $last (i32.add (local.get $at) (i32.and (local.get $length) (i32.const -8))))
    (loop $words
      (local.set $word (i64.load align=1 (local.get $at)))
      (if (i32.eq (local.get $at) (local.get $last))
        (then
          ;; What is left of the bytes, and the length above it.
          (local.set $word
            (i64.or
              (i64.and
                (local.get $word)
                (i64.sub
                  (i64.shl
                    (i64.const 1)
                    (i64.extend_i32_u (i32.shl (i32.and (local.get $length) (i32.const 7)) (i32.const 3))))
                  (i64.const 1)))
              (i64.shl (i64.extend_i32_u (local.get $length)) (i64.const 56))))))
      (local.set $v3 (i64.xor (local.get $v3) (local.get $word)))
      (local.set $rounds (i32.const 2))
      (loop $compression
        (local.set $v0 (i64.add (local.get $v0) (local.get $v1)))
        (local.set $v2 (i64.add (local.get $v2) (local.get $v3)))
        (local.set $v1 (i64.xor (i64.rotl (local.get $v1) (i64.const 13)) (local.get $v0)))
        (local.set $v3 (i64.xor (i64.rotl (local.get $v3) (i64.const 16)) (local.get $v2)))
        (local.set $v0 (i64.rotl (local.get $v0) (i64.const 32)))
        (local.set $v2 (i64.add (local.get $v2) (local.get $v1)))
        (local.set $v0 (i64.add (local.get $v0) (local.get $v3)))
        (local.set $v1 (i64.xor (i64.rotl (local.get $v1) (i64.const 17)) (local.get $v2)))
        (local.set $v3 (i64.xor (i64.rotl (local.get $v3) (i64.const 21)) (local.get $v0)))
        (local.set $v2 (i64.rotl (local.get $v2) (i64.const 32)))
        (br_if $compression (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1)))))
      (local.set $v0 (i64.xor (local.get $v0) (local.get $word)))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $words (i32.le_u (local.get $at) (local.get $last))))
    (local.set $v2 (i64.xor (local.get $v2) (i64.const 0xff)))
    (local.set $rounds (i32.const 4))
    (loop $finalization
      (local.set $v0 (i64.add (local.get $v0) (local.get $v1)))
      (local.set $v2 (i64.add (local.get $v2) (local.get $v3)))
      (local.set $v1 (i64.xor (i64.rotl (local.get $v1) (i64.const 13)) (local.get $v0)))
      (local.set $v3 (i64.xor (i64.rotl (local.get $v3) (i64.const 16)) (local.get $v2)))
      (local.set $v0 (i64.rotl (local.get $v0) (i64.const 32)))
      (local.set $v2 (i64.add (local.get $v2) (local.get $v1)))
      (local.set $v0 (i64.add (local.get $v0) (local.get $v3)))
      (local.set $v1 (i64.xor (i64.rotl (local.get $v1) (i64.const 17)) (local.get $v2)))
      (local.set $v3 (i64.xor (i64.rotl (local.get $v3) (i64.const 21)) (local.get $v0)))
      (local.set $v2 (i64.rotl (local.get $v2) (i64.const 32)))
      (br_if $finalization (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1)))))
    (i64.xor
      (i64.xor (local.get $v0) (local.get $v1))
      (i64.xor (local.get $v2) (local.get $v3))))

  ;; Where the line that begins at `at` ends: its newline, or `end`. Eight bytes at a time; behind `end` there is memory.
  (func $lineEnd (param $at i32) (param $end i32) (result i32)
    (local $found i64) (local $word i64)
    (loop $words
      (local.set $word (i64.xor (i64.load align=1 (local.get $at)) (i64.const 0x0a0a0a0a0a0a0a0a)))
      (local.set $found
        (i64.and
          (i64.and
            (i64.sub (local.get $word) (i64.const 0x0101010101010101))
            (i64.xor (local.get $word) (i64.const -1)))
          (i64.const 0x8080808080808080)))
      (if (i64.ne (local.get $found) (i64.const 0))
        (then
          (local.set $at
            (i32.add (local.get $at) (i32.wrap_i64 (i64.shr_u (i64.ctz (local.get $found)) (i64.const 3)))))
          (return (select (local.get $at) (local.get $end) (i32.lt_u (local.get $at) (local.get $end))))))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $words (i32.lt_u (local.get $at) (local.get $end))))
    (local.get $end))

  ;; Adds the rows between `at` and `end`, `,\n` between each two of them, to the sum; `chained`: to the chain too.
  (func (export "addRows") (param $at i32) (param $end i32) (param $chained i32)
    (local $stop i32) (local $hash i64)
    (loop $lines
      (local.set $stop (call $lineEnd (local.get $at) (local.get $end)))
      (local.set $hash
        (call $hash
          (local.get $at)
          (i32.sub
            (i32.sub (local.get $stop) (local.get $at))
            ;; But for the last one a comma stands before the newline.
            (i32.ne (local.get $stop) (local.get $end)))))
      (global.set $sum (i64.add (global.get $sum) (local.get $hash)))
      (if (local.get $chained)
        (then
          (i64.store (i32.const 0) (global.get $chain))
          (i64.store (i32.const 8) (local.get $hash))
          (global.set $chain (call $hash (i32.const 0) (i32.const 16)))))
      (local.set $at (i32.add (local.get $stop) (i32.const 1)))
      (br_if $lines (i32.lt_u (local.get $at) (local.get $end))))))
