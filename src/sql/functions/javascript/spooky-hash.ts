import { SqlFailure } from './scalar-function.ts'

const MASK = (1n << 64n) - 1n
const FILL = 0xdeadbeefdeadbeefn
/** Longer messages go another way in SpookyHash, which is not here. */
const SHORT = 192

type State = [bigint, bigint, bigint, bigint]

const [A, B, C, D] = [0, 1, 2, 3]

function rotate(x: bigint, bits: number): bigint {
  return ((x << BigInt(bits)) | (x >> BigInt(64 - bits))) & MASK
}

/** One step of the mix: turn `x`, add `y` to it, fold it into `z`. */
function mixStep(state: State, x: number, bits: number, y: number, z: number): void {
  state[x] = (rotate(state[x]!, bits) + state[y]!) & MASK
  state[z] = state[z]! ^ state[x]!
}

const mixBits = [50, 52, 30, 41, 54, 48, 38, 37, 62, 34, 5, 36]

function mix(state: State): void {
  mixBits.forEach((bits, i) => {
    const turn = [C, D, A, B] as const
    mixStep(state, turn[i % 4]!, bits, turn[(i + 1) % 4]!, turn[(i + 2) % 4]!)
  })
}

const endBits = [15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63]

function end(state: State): void {
  endBits.forEach((bits, i) => {
    const turn = [C, D, A, B] as const
    const [x, y] = [turn[i % 4]!, turn[(i + 1) % 4]!]
    state[y] = state[y]! ^ state[x]!
    state[x] = rotate(state[x]!, bits)
    state[y] = (state[y]! + state[x]!) & MASK
  })
}

/** SpookyHash V2 of a message of less than 192 bytes, seed 0: the first of its two words. */
export function spookyHash(input: Uint8Array): bigint {
  if (input.length >= SHORT) {
    throw new SqlFailure('NOT_SUPPORTED', `spooky_hash_v2 of ${SHORT} bytes and more is not supported`)
  }
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.byteLength)
  const state: State = [0n, 0n, FILL, FILL]
  const add = (at: number, value: bigint): void => {
    state[at] = (state[at]! + value) & MASK
  }
  let at = 0
  if (bytes.length > 15) {
    for (; at + 32 <= bytes.length; at += 32) {
      add(C, bytes.readBigUInt64LE(at))
      add(D, bytes.readBigUInt64LE(at + 8))
      mix(state)
      add(A, bytes.readBigUInt64LE(at + 16))
      add(B, bytes.readBigUInt64LE(at + 24))
    }
    if (bytes.length - at >= 16) {
      add(C, bytes.readBigUInt64LE(at))
      add(D, bytes.readBigUInt64LE(at + 8))
      mix(state)
      at += 16
    }
  }
  add(D, (BigInt(bytes.length) << 56n) & MASK)
  const rest = Buffer.alloc(16)
  bytes.copy(rest, 0, at)
  if (at === bytes.length) {
    add(C, FILL)
    add(D, FILL)
  } else {
    add(C, rest.readBigUInt64LE(0))
    add(D, rest.readBigUInt64LE(8))
  }
  end(state)
  return state[A]!
}
