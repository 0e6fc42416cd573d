import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRowDigester, NO_ROWS, sumOf } from '../../src/shared/row-digest.ts'
import { rowDigestCode } from '../support/row-digest-code.ts'

it('The compiled code of the row digest is up to date', async () => {
  // `npm run wasm` writes this file.
  await expect(await rowDigestCode()).toMatchFileSnapshot('../../src/shared/row-digest-code.ts')
})

const digester = createRowDigester(randomBytes(32))
const page = (rows: readonly string[]) => Buffer.from(`[${rows.join(',\n')}]`)
const digest = (rows: readonly string[]) => digester.digest(page(rows), NO_ROWS)
const rowsOf = fc.array(
  fc
    .array(fc.oneof(fc.string({ unit: 'binary' }), fc.integer(), fc.constant(null)), { minLength: 1 })
    .map((row) => JSON.stringify(row)),
  { minLength: 1, maxLength: 30 },
)

/** SipHash-2-4 as its paper defines it, over BigInt. */
function sipHash(key: Buffer, bytes: Buffer): bigint {
  const u64 = (value: bigint) => BigInt.asUintN(64, value)
  const rotl = (value: bigint, by: bigint) => u64((value << by) | (value >> (64n - by)))
  const [k0, k1] = [key.readBigUInt64LE(0), key.readBigUInt64LE(8)]
  let [v0, v1, v2, v3] = [
    k0 ^ 0x736f6d6570736575n,
    k1 ^ 0x646f72616e646f6dn,
    k0 ^ 0x6c7967656e657261n,
    k1 ^ 0x7465646279746573n,
  ] as [bigint, bigint, bigint, bigint]
  const rounds = (count: number) => {
    for (let i = 0; i < count; i++) {
      v0 = u64(v0 + v1)
      v1 = rotl(v1, 13n) ^ v0
      v0 = rotl(v0, 32n)
      v2 = u64(v2 + v3)
      v3 = rotl(v3, 16n) ^ v2
      v0 = u64(v0 + v3)
      v3 = rotl(v3, 21n) ^ v0
      v2 = u64(v2 + v1)
      v1 = rotl(v1, 17n) ^ v2
      v2 = rotl(v2, 32n)
    }
  }
  const padded = Buffer.alloc(bytes.length - (bytes.length % 8) + 8)
  bytes.copy(padded)
  padded[padded.length - 1] = bytes.length & 0xff
  for (let at = 0; at < padded.length; at += 8) {
    const word = padded.readBigUInt64LE(at)
    v3 ^= word
    rounds(2)
    v0 ^= word
  }
  v2 ^= 0xffn
  rounds(4)
  return v0 ^ v1 ^ v2 ^ v3
}

const hex = (value: bigint) => BigInt.asUintN(64, value).toString(16).padStart(16, '0')

describe('A digest of rows', () => {
  it('is compared with a SipHash-2-4 that gives the value of the paper', () => {
    const key = Buffer.from(Array.from({ length: 16 }, (_, i) => i))
    expect(hex(sipHash(key, Buffer.from(Array.from({ length: 15 }, (_, i) => i))))).toBe('a129ca6149be45e5')
  })

  it('is the sum, and the chain, of the SipHash-2-4 of each row', () => {
    fc.assert(
      fc.property(rowsOf, fc.uint8Array({ minLength: 32, maxLength: 32 }), (rows, bytes) => {
        const key = Buffer.from(bytes)
        const hashes = rows.map((row) => sipHash(key, Buffer.from(row)))
        const chain = hashes.reduce((before, hash) => {
          const both = Buffer.alloc(16)
          both.writeBigUInt64LE(before, 0)
          both.writeBigUInt64LE(hash, 8)
          return sipHash(key, both)
        }, 0n)
        expect(createRowDigester(key).digest(page(rows), NO_ROWS)).toEqual({
          sum: hex(hashes.reduce((sum, hash) => sum + hash, 0n)),
          chain: hex(chain),
        })
      }),
    )
  })

  it('does not depend on the cut into pages, and its sum not on the order of rows', () => {
    fc.assert(
      fc.property(rowsOf, fc.nat(), (rows, cut) => {
        const whole = digest(rows)
        const [first, rest] = [rows.slice(0, cut % rows.length), rows.slice(cut % rows.length)]
        const one = first.length === 0 ? { sum: NO_ROWS, chain: NO_ROWS } : digest(first)
        const two = digester.digest(page(rest), one.chain)
        expect({ sum: sumOf([one.sum, two.sum]), chain: two.chain }).toEqual(whole)
        expect(digest(rows.toReversed()).sum).toBe(whole.sum)
      }),
    )
  })

  it('changes with a row, a repeated row, the order and the key', () => {
    const rows = ['[1]', '[2]', '[3]']
    const { sum, chain } = digest(rows)
    expect(digest(['[1]', '[2]', '[4]']).sum).not.toBe(sum)
    expect(digest([...rows, '[3]']).sum).not.toBe(sum)
    expect(digest(['[2]', '[1]', '[3]']).chain).not.toBe(chain)
    expect(createRowDigester(randomBytes(32)).digest(page(rows)).sum).not.toBe(sum)
    expect(createRowDigester(randomBytes(32)).keyName).not.toBe(digester.keyName)
  })

  it('covers pages of any size, and has no chain unless one is requested', () => {
    expect(digester.digest(Buffer.from('[]'))).toEqual({ sum: NO_ROWS })
    const wide = JSON.stringify(['x'.repeat(5_000_000)])
    expect(digester.digest(page([wide, '[1]']))).toEqual({
      sum: sumOf([digester.digest(page([wide])).sum, digester.digest(page(['[1]'])).sum]),
    })
  })
})
