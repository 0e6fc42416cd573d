import { SqlFailure } from './scalar-function.ts'
import { halves, Word64 } from './word64.ts'

const FILL = halves(0xdeadbeefdeadbeefn)
/** SpookyHash uses another algorithm for longer messages, which is not implemented here. */
const SHORT = 192

const mixBits = [50, 52, 30, 41, 54, 48, 38, 37, 62, 34, 5, 36]
const endBits = [15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63]

type State = readonly [a: Word64, b: Word64, c: Word64, d: Word64]

/** The word that a step rotates: the steps go through the words in turn, from the third on. */
function rotated(state: State, step: number): Word64 {
  return state[(step + 2) & 3]!
}

function mix(state: State): void {
  for (let step = 0; step < mixBits.length; step++) {
    const word = rotated(state, step)
      .rotate(mixBits[step]!)
      .add(rotated(state, step + 1))
    rotated(state, step + 2).xor(word)
  }
}

function end(state: State): void {
  for (let step = 0; step < endBits.length; step++) {
    const [word, next] = [rotated(state, step), rotated(state, step + 1)]
    next.xor(word)
    next.add(word.rotate(endBits[step]!))
  }
}

const read = new Word64()

/** SpookyHash V2 for a message of less than 192 bytes, seed 0: the first of its two words. */
export function spookyHash(bytes: Uint8Array): Word64 {
  if (bytes.length >= SHORT) {
    throw new SqlFailure('NOT_SUPPORTED', `spooky_hash_v2 of ${SHORT} bytes and more is not supported`)
  }
  const state: State = [new Word64(), new Word64(), new Word64().set(FILL), new Word64().set(FILL)]
  const [a, b, c, d] = state
  let at = 0
  for (; at + 32 <= bytes.length; at += 32) {
    c.add(read.read(bytes, at))
    d.add(read.read(bytes, at + 8))
    mix(state)
    a.add(read.read(bytes, at + 16))
    b.add(read.read(bytes, at + 24))
  }
  if (bytes.length - at >= 16) {
    c.add(read.read(bytes, at))
    d.add(read.read(bytes, at + 8))
    mix(state)
    at += 16
  }
  d.add({ high: bytes.length << 24, low: 0 })
  if (at === bytes.length) {
    c.add(FILL)
    d.add(FILL)
  } else {
    const rest = new Uint8Array(16)
    rest.set(bytes.subarray(at))
    c.add(read.read(rest, 0))
    d.add(read.read(rest, 8))
  }
  end(state)
  return a
}
