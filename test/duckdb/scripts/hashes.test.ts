import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { murmur3, xxhash64, xxhash64OfWord } from '../../../src/duckdb/scripts/hashes.ts'
import { spookyHash } from '../../../src/duckdb/scripts/spooky-hash.ts'
import { halves, Word64 } from '../../../src/duckdb/scripts/word64.ts'

const signed = (value: bigint): bigint => BigInt.asIntN(64, value)
const unsigned = (value: bigint): bigint => BigInt.asUintN(64, value)
const words = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.constantFrom(0n, 1n, 0xffffffffn, 0x80000000n, 2n ** 63n, 2n ** 64n - 1n),
)

describe('A Word64', () => {
  it('calculates like a bigint modulo 2^64', () => {
    fc.assert(
      fc.property(words, words, fc.integer({ min: 1, max: 63 }), (a, b, bits) => {
        const word = (): Word64 => Word64.of(a)
        const shift = BigInt(bits)
        expect([
          word().add(halves(b)).toBigInt(),
          word().xor(halves(b)).toBigInt(),
          word().multiply(halves(b)).toBigInt(),
          word().rotate(bits).toBigInt(),
          word().fold(bits).toBigInt(),
        ]).toEqual([
          signed(a + b),
          signed(a ^ b),
          signed(a * b),
          signed((a << shift) | (a >> (64n - shift))),
          signed(a ^ (a >> shift)),
        ])
      }),
    )
  })

  it('reads and writes its bytes', () => {
    fc.assert(
      fc.property(words, (value) => {
        const bytes = Buffer.alloc(16)
        Word64.of(value).writeLittleEndian(bytes, 0)
        Word64.of(value).writeBigEndian(bytes, 8)
        expect([bytes.readBigUInt64LE(0), bytes.readBigUInt64BE(8)]).toEqual([value, value])
        expect(new Word64().read(bytes, 0).toBigInt()).toBe(signed(value))
        expect(xxhash64OfWord(halves(value)).toBigInt()).toBe(xxhash64(bytes.subarray(0, 8)).toBigInt())
      }),
    )
  })
})

function bytesOf(word: Word64): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(unsigned(word.toBigInt()))
  return bytes
}

// The expected digests come from an implementation with bigints, for messages of all lengths below 191.
it.each([
  [
    'xxhash64',
    (bytes: Uint8Array) => bytesOf(xxhash64(bytes)),
    '0f3c64f04d92a0285b5aeef8d30c000425c2a3583f2f0e7c416737c14d45df43',
  ],
  ['murmur3', murmur3, '6c2a2ba67bb5c4a9d3167ff15df97111330bdd798f9621c503e4d8d50c808eba'],
  [
    'spooky',
    (bytes: Uint8Array) => bytesOf(spookyHash(bytes)),
    'd54f3121baff6671f1aeb5618e81793404b7e53291bc491568951b4ae536bb21',
  ],
] as const)('%s has the expected values for messages of all lengths below 191', (_, hash, digest) => {
  const all = createHash('sha256')
  for (let length = 0; length < 191; length++) {
    all.update(hash(Uint8Array.from({ length }, (_, i) => (i * i * 37 + length * 11 + 255 * (i & 1)) & 255)))
  }
  expect(all.digest('hex')).toBe(digest)
})
