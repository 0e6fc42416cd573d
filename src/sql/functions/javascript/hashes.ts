const MASK = (1n << 64n) - 1n

const P1 = 11400714785074694791n
const P2 = 14029467366897019727n
const P3 = 1609587929392839161n
const P4 = 9650029242287828579n
const P5 = 2870177450012600261n

function rotate(x: bigint, bits: bigint): bigint {
  return ((x << bits) | (x >> (64n - bits))) & MASK
}

function xxRound(accumulator: bigint, input: bigint): bigint {
  return (rotate((accumulator + input * P2) & MASK, 31n) * P1) & MASK
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** xxHash64 with seed 0. */
export function xxhash64(input: Uint8Array): bigint {
  const bytes = view(input)
  const length = bytes.length
  let at = 0
  let hash: bigint
  if (length >= 32) {
    const lanes = [(P1 + P2) & MASK, P2, 0n, -P1 & MASK]
    for (; at + 32 <= length; at += 32) {
      for (let lane = 0; lane < 4; lane++) lanes[lane] = xxRound(lanes[lane]!, bytes.readBigUInt64LE(at + 8 * lane))
    }
    hash = (rotate(lanes[0]!, 1n) + rotate(lanes[1]!, 7n) + rotate(lanes[2]!, 12n) + rotate(lanes[3]!, 18n)) & MASK
    for (const lane of lanes) hash = ((hash ^ xxRound(0n, lane)) * P1 + P4) & MASK
  } else hash = P5
  hash = (hash + BigInt(length)) & MASK
  for (; at + 8 <= length; at += 8) {
    hash = (rotate(hash ^ xxRound(0n, bytes.readBigUInt64LE(at)), 27n) * P1 + P4) & MASK
  }
  if (at + 4 <= length) {
    hash = (rotate(hash ^ ((BigInt(bytes.readUInt32LE(at)) * P1) & MASK), 23n) * P2 + P3) & MASK
    at += 4
  }
  for (; at < length; at++) hash = (rotate(hash ^ ((BigInt(bytes[at]!) * P5) & MASK), 11n) * P1) & MASK
  hash = ((hash ^ (hash >> 33n)) * P2) & MASK
  hash = ((hash ^ (hash >> 29n)) * P3) & MASK
  return hash ^ (hash >> 32n)
}

const C1 = 0x87c37b91114253d5n
const C2 = 0x4cf5ad432745937fn

function murmurFinal(k: bigint): bigint {
  let x = k ^ (k >> 33n)
  x = (x * 0xff51afd7ed558ccdn) & MASK
  x ^= x >> 33n
  x = (x * 0xc4ceb9fe1a85ec53n) & MASK
  return x ^ (x >> 33n)
}

/** MurmurHash3 x64, 128 bits, seed 0; both halves little-endian. */
export function murmur3(input: Uint8Array): Uint8Array {
  const bytes = view(input)
  const blocks = bytes.length >> 4
  let [h1, h2] = [0n, 0n]
  const mix1 = (k: bigint): bigint => (rotate((k * C1) & MASK, 31n) * C2) & MASK
  const mix2 = (k: bigint): bigint => (rotate((k * C2) & MASK, 33n) * C1) & MASK
  for (let i = 0; i < blocks; i++) {
    h1 ^= mix1(bytes.readBigUInt64LE(i * 16))
    h1 = (((rotate(h1, 27n) + h2) & MASK) * 5n + 0x52dce729n) & MASK
    h2 ^= mix2(bytes.readBigUInt64LE(i * 16 + 8))
    h2 = (((rotate(h2, 31n) + h1) & MASK) * 5n + 0x38495ab5n) & MASK
  }
  const tail = bytes.subarray(blocks * 16)
  let [k1, k2] = [0n, 0n]
  for (let i = tail.length - 1; i >= 0; i--) {
    if (i >= 8) k2 |= BigInt(tail[i]!) << BigInt(8 * (i - 8))
    else k1 |= BigInt(tail[i]!) << BigInt(8 * i)
  }
  if (tail.length > 8) h2 ^= mix2(k2)
  if (tail.length > 0) h1 ^= mix1(k1)
  h1 ^= BigInt(bytes.length)
  h2 ^= BigInt(bytes.length)
  h1 = (h1 + h2) & MASK
  h2 = (h2 + h1) & MASK
  h1 = murmurFinal(h1)
  h2 = murmurFinal(h2)
  h1 = (h1 + h2) & MASK
  h2 = (h2 + h1) & MASK
  const out = Buffer.alloc(16)
  out.writeBigUInt64LE(h1, 0)
  out.writeBigUInt64LE(h2, 8)
  return new Uint8Array(out)
}
