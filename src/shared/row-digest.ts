import { ROW_DIGEST_CODE } from './row-digest-code.ts'

/** The digest of some rows of a result. Lower hex, 16 digits each. */
export interface PageDigest {
  /** SipHash-2-4 of each row's bytes, summed modulo 2^64: the same in any order. */
  readonly sum: string
  /**
   * The digest of this page and all pages before it, in order: each step is SipHash-2-4 of the previous step and the
   * row's hash.
   */
  readonly chain?: string | undefined
}

/** Makes digests of result pages by a key of the cluster. Without the key, digests can neither be made nor guessed. */
export interface RowDigester {
  /** Distinguishes digests of this key from those of other keys, and reveals nothing else about it. */
  readonly keyName: string
  /**
   * @param page `[row,\nrow …]`, JSON: no row has a raw newline
   * @param before the chain of the rows before it, `NO_ROWS` for the first; undefined: not chained
   */
  digest(page: Uint8Array, before?: string): PageDigest
}

/** The digest of no rows. */
export const NO_ROWS = '0'.repeat(16)

/** The code's memory before a page. After a page, up to seven more bytes may be read. */
const SCRATCH_BYTES = 64
const BEHIND_BYTES = 8
const MEMORY_PAGE_BYTES = 64 * 1024
/** WebAssembly memory never shrinks, so a page larger than this gets its own instance. */
const KEPT_BYTES = 4 * 1024 * 1024

/**
 * Makes digests with WebAssembly, `row-digest.wat`. It takes one call a page; a library with one call a row takes six
 * times as long.
 * @param key 32 bytes, derived from the cluster's secret only for this
 */
export function createRowDigester(key: Buffer): RowDigester {
  let kept: DigestCode | undefined
  return {
    keyName: key.subarray(16, 20).toString('hex'),
    digest(page, before) {
      const rows = page.length - 2
      if (rows <= 0) return { sum: NO_ROWS, ...(before !== undefined && { chain: before }) }
      const code = page.length <= KEPT_BYTES ? (kept ??= newCode(key)) : newCode(key)
      memoryFor(code, page.length).set(page, SCRATCH_BYTES)
      code.sum.value = 0n
      code.chain.value = before === undefined ? 0n : BigInt(`0x${before}`)
      const at = SCRATCH_BYTES + 1
      code.addRows(at, at + rows, before === undefined ? 0 : 1)
      return { sum: hex(code.sum.value), ...(before !== undefined && { chain: hex(code.chain.value) }) }
    },
  }
}

/** The sum of the digests of parts, in any order. */
export function sumOf(sums: readonly string[]): string {
  return hex(sums.reduce((total, sum) => total + BigInt(`0x${sum}`), 0n))
}

/** The part of WebAssembly that is used here. Its types come only with those of browsers. */
declare const WebAssembly: {
  readonly Module: new (code: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
}

/** The exports of `row-digest.wat`. */
interface DigestCode {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number }
  readonly sum: { value: bigint }
  readonly chain: { value: bigint }
  setKey(low: bigint, high: bigint): void
  addRows(at: number, end: number, chained: number): void
}

let compiled: object | undefined

function newCode(key: Buffer): DigestCode {
  compiled ??= new WebAssembly.Module(Buffer.from(ROW_DIGEST_CODE, 'base64'))
  const code = new WebAssembly.Instance(compiled).exports as DigestCode
  code.setKey(key.readBigUInt64LE(0), key.readBigUInt64LE(8))
  return code
}

function memoryFor({ memory }: DigestCode, pageBytes: number): Uint8Array {
  const missing = SCRATCH_BYTES + pageBytes + BEHIND_BYTES - memory.buffer.byteLength
  if (missing > 0) memory.grow(Math.ceil(missing / MEMORY_PAGE_BYTES))
  return new Uint8Array(memory.buffer)
}

function hex(value: bigint): string {
  return BigInt.asUintN(64, value).toString(16).padStart(16, '0')
}
