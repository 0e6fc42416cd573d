import { halves, int32, Word64, type Halves } from './word64.ts'

const P1 = halves(11400714785074694791n)
const P2 = halves(14029467366897019727n)
const P3 = halves(1609587929392839161n)
const P4 = halves(9650029242287828579n)
const P5 = halves(2870177450012600261n)
const FIRST_LANE = Word64.of(11400714785074694791n).add(P2)
const LAST_LANE = halves(-11400714785074694791n)
const ZERO = halves(0n)

// Reused words: no function here runs while another one uses them.
const word = new Word64()
const lanes = [new Word64(), new Word64(), new Word64(), new Word64()] as const
const rotations = [1, 7, 12, 18] as const

function xxRound(accumulator: Word64, input: Word64): Word64 {
  return accumulator.add(input.multiply(P2)).rotate(31).multiply(P1)
}

/** xxHash64 with seed 0. */
export function xxhash64(bytes: Uint8Array): Word64 {
  const length = bytes.length
  const hash = new Word64()
  let at = 0
  if (length >= 32) {
    for (const [i, start] of [FIRST_LANE, P2, ZERO, LAST_LANE].entries()) lanes[i]!.set(start)
    for (; at + 32 <= length; at += 32) {
      for (let lane = 0; lane < 4; lane++) xxRound(lanes[lane]!, word.read(bytes, at + 8 * lane))
    }
    for (let lane = 0; lane < 4; lane++) hash.add(word.set(lanes[lane]!).rotate(rotations[lane]!))
    for (const lane of lanes)
      hash
        .xor(xxRound(word.set(ZERO), lane))
        .multiply(P1)
        .add(P4)
  } else hash.set(P5)
  hash.add({ high: 0, low: length })
  for (; at + 8 <= length; at += 8) {
    hash.xor(word.read(bytes, at).multiply(P2).rotate(31).multiply(P1)).rotate(27).multiply(P1).add(P4)
  }
  if (at + 4 <= length) {
    hash
      .xor(small(int32(bytes, at)).multiply(P1))
      .rotate(23)
      .multiply(P2)
      .add(P3)
    at += 4
  }
  for (; at < length; at++) hash.xor(small(bytes[at]!).multiply(P5)).rotate(11).multiply(P1)
  return xxEnd(hash)
}

/** xxHash64 of eight bytes, the lowest first. */
export function xxhash64OfWord(input: Halves): Word64 {
  const hash = new Word64().set(P5).add({ high: 0, low: 8 })
  hash.xor(word.set(input).multiply(P2).rotate(31).multiply(P1)).rotate(27).multiply(P1).add(P4)
  return xxEnd(hash)
}

function xxEnd(hash: Word64): Word64 {
  return hash.fold(33).multiply(P2).fold(29).multiply(P3).fold(32)
}

/** An unsigned number of 32 bits, as a word. */
function small(low: number): Word64 {
  word.high = 0
  word.low = low
  return word
}

const C1 = halves(0x87c37b91114253d5n)
const C2 = halves(0x4cf5ad432745937fn)
const N1 = halves(0x52dce729n)
const N2 = halves(0x38495ab5n)
const FIVE = halves(5n)
const F1 = halves(0xff51afd7ed558ccdn)
const F2 = halves(0xc4ceb9fe1a85ec53n)

const mix1 = (k: Word64): Word64 => k.multiply(C1).rotate(31).multiply(C2)
const mix2 = (k: Word64): Word64 => k.multiply(C2).rotate(33).multiply(C1)
const murmurEnd = (k: Word64): Word64 => k.fold(33).multiply(F1).fold(33).multiply(F2).fold(33)

/** MurmurHash3 x64, 128 bits, seed 0; both halves little-endian. */
export function murmur3(bytes: Uint8Array): Uint8Array {
  const length = bytes.length
  const [h1, h2] = [new Word64(), new Word64()]
  let at = 0
  for (; at + 16 <= length; at += 16) {
    h1.xor(mix1(word.read(bytes, at)))
    h1.rotate(27).add(h2).multiply(FIVE).add(N1)
    h2.xor(mix2(word.read(bytes, at + 8)))
    h2.rotate(31).add(h1).multiply(FIVE).add(N2)
  }
  if (at < length) {
    const rest = new Uint8Array(16)
    rest.set(bytes.subarray(at))
    h1.xor(mix1(word.read(rest, 0)))
    h2.xor(mix2(word.read(rest, 8)))
  }
  h1.xor({ high: 0, low: length })
  h2.xor({ high: 0, low: length })
  h1.add(h2)
  h2.add(h1)
  murmurEnd(h1)
  murmurEnd(h2)
  h1.add(h2)
  h2.add(h1)
  const out = new Uint8Array(16)
  h1.writeLittleEndian(out, 0)
  h2.writeLittleEndian(out, 8)
  return out
}
