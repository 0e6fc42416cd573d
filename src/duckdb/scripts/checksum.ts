import { xxhash64, xxhash64OfWord } from './hashes.ts'
import type { ScalarFunction } from './scalar-function.ts'
import { halves } from './word64.ts'

/**
 * Multiplies each hash, so that sums of equal sets are equal and other sums almost never are; it also represents NULL.
 */
const PRIME64 = halves(0x9e3779b185ebca87n)

const weighted = (bytes: Uint8Array): bigint => xxhash64(bytes).multiply(PRIME64).toBigInt()
const ofLong = (value: bigint): bigint => xxhash64OfWord(halves(value)).multiply(PRIME64).toBigInt()

const double = new Float64Array(1)
const bitsOfDouble = new BigInt64Array(double.buffer)

function ofDouble(value: number): bigint {
  // Both zeros count as one value, and so do all NaNs.
  double[0] = Number.isNaN(value) ? Number.NaN : value === 0 ? 0 : value
  return ofLong(bitsOfDouble[0]!)
}

const real = new Float32Array(1)
const bitsOfReal = new Int32Array(real.buffer)

function ofReal(value: number): bigint {
  real[0] = Number.isNaN(value) ? Number.NaN : value === 0 ? 0 : value
  return ofLong(BigInt(bitsOfReal[0]!))
}

/** The bytes of the sum of all hashes, modulo 2^64. */
function end(sum: string): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(sum)))
  return new Uint8Array(bytes)
}

export const checksumScripts: readonly ScalarFunction[] = [
  { name: 'u_checksum_long', parameters: ['BIGINT'], returns: 'BIGINT', call: ofLong },
  { name: 'u_checksum_double', parameters: ['DOUBLE'], returns: 'BIGINT', call: ofDouble },
  { name: 'u_checksum_real', parameters: ['DOUBLE'], returns: 'BIGINT', call: ofReal },
  { name: 'u_checksum_bytes', parameters: ['BLOB'], returns: 'BIGINT', call: weighted },
  { name: 'u_checksum_end', parameters: ['VARCHAR'], returns: 'BLOB', call: end },
]
