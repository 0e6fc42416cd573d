import { xxhash64 } from './hashes.ts'
import type { ScalarFunction } from './scalar-function.ts'

/** Multiplies each hash, so that sums of equal sets are equal and others hardly ever are; it stands for NULL as well. */
const PRIME64 = 0x9e3779b185ebca87n

function weighted(bytes: Uint8Array): bigint {
  return BigInt.asIntN(64, xxhash64(bytes) * PRIME64)
}

function ofLong(value: bigint): bigint {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(value)
  return weighted(bytes)
}

function ofDouble(value: number): bigint {
  const bytes = Buffer.alloc(8)
  // Both zeros are one value, and so are all NaNs.
  bytes.writeDoubleLE(value === 0 ? 0 : value)
  return weighted(bytes)
}

function ofReal(value: number): bigint {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value === 0 ? 0 : value)
  return ofLong(BigInt(bytes.readInt32LE()))
}

/** The sum of all, modulo 2^64, as its bytes. */
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
