import { ROW_DIGEST_CODE } from './row-digest-code.ts'

/** Of some of a result's rows. Lower hex, 16 digits each. */
export interface PageDigest {
  /** SipHash-2-4 of each row's bytes, summed modulo 2^64: the same in whatever order. */
  readonly sum: string
  /** The same in their order: a row's is SipHash-2-4 of the one before it and the row's hash. Of the page and all before it. */
  readonly chain?: string | undefined
}

/** Digests of result pages by a key of the cluster: who has not the key can neither make nor guess one. */
export interface RowDigester {
  /** Tells digests of this key from those of others, and says nothing else of it. */
  readonly keyName: string
  /**
   * @param page `[row,\nrow …]`, JSON: no row has a raw newline
   * @param before the chain of the rows before it, `NO_ROWS` for the first; undefined: not chained
   */
  digest(page: Uint8Array, before?: string): PageDigest
}

/** What the digests of no rows are. */
export const NO_ROWS = '0'.repeat(16)

/** What the code has before its pages: a page begins behind it, and seven bytes behind a page may be read. */
const SCRATCH_BYTES = 64
const BEHIND_BYTES = 8
const MEMORY_PAGE_BYTES = 64 * 1024
/** Memory never shrinks: for larger pages there is one that goes with them. */
const KEPT_BYTES = 4 * 1024 * 1024

/**
 * The code is WebAssembly, `row-digest.wat`: a call a page, where a library's call a row takes six times as long.
 * @param key 32 bytes, derived of the cluster's secret for this alone
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

/** Of digests of parts, in whatever order. */
export function sumOf(sums: readonly string[]): string {
  return hex(sums.reduce((total, sum) => total + BigInt(`0x${sum}`), 0n))
}

/** As much of it as is used here: its types come with those of browsers. */
declare const WebAssembly: {
  readonly Module: new (code: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
}

/** What `row-digest.wat` exports. */
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
