import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { murmur3, xxhash64 } from './hashes.ts'
import { invalidArgument, SqlFailure, type ScalarFunction } from './scalar-function.ts'
import { spookyHash } from './spooky-hash.ts'
import type { Word64 } from './word64.ts'

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

function toBase32(bytes: Uint8Array): string {
  let out = ''
  let [bits, value] = [0, 0]
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5) {
      out += BASE32[(value >>> (bits - 5)) & 31]
      bits -= 5
      value &= (1 << bits) - 1
    }
  }
  if (bits > 0) out += BASE32[(value << (5 - bits)) & 31]
  return out.padEnd(Math.ceil(out.length / 8) * 8, '=')
}

function fromBase32(text: string): Uint8Array {
  const body = text.endsWith('=') ? text.replace(/=+$/, '') : text
  const out = new Uint8Array((body.length * 5) >> 3)
  let [bits, value, at] = [0, 0, 0]
  for (const char of body) {
    const digit = BASE32.indexOf(char)
    if (digit < 0) throw invalidArgument(`Unrecognized character: ${char}`)
    value = (value << 5) | digit
    bits += 5
    if (bits >= 8) {
      out[at++] = value >>> (bits - 8)
      bits -= 8
      value &= (1 << bits) - 1
    }
  }
  if ([1, 3, 6].includes(body.length % 8)) throw invalidArgument(`Invalid input length ${body.length}`)
  return out
}

/** java.util.Base64: no character outside of the alphabet; padding is complete or absent. */
function fromBase64(text: string, others: RegExp): Uint8Array {
  const body = text.endsWith('=') ? text.replace(/={1,2}$/, '') : text
  const bad = others.exec(body)
  if (bad !== null) throw invalidArgument(`Illegal base64 character ${bad[0].codePointAt(0)!.toString(16)}`)
  if (body.length % 4 === 1) throw invalidArgument('Input byte[] should at least have 2 bytes for base64 bytes')
  if (text !== body && text.length % 4 !== 0) throw invalidArgument('Input byte array has wrong 4-byte ending unit')
  // Also reads the letters of base64url.
  return Buffer.from(body, 'base64')
}

/** One replacement for each bad lead byte with its continuation bytes, as Slice counts them, unlike TextDecoder. */
function fromUtf8(bytes: Uint8Array, replacement: string): string {
  if ([...replacement].length > 1) {
    throw invalidArgument('Replacement character string must empty or a single character')
  }
  let out = ''
  let at = 0
  while (at < bytes.length) {
    const lead = bytes[at]!
    const length =
      lead < 0x80
        ? 1
        : lead < 0xc0
          ? 0
          : lead < 0xe0
            ? 2
            : lead < 0xf0
              ? 3
              : lead < 0xf8
                ? 4
                : lead < 0xfc
                  ? 5
                  : lead < 0xfe
                    ? 6
                    : 0
    let end = at + 1
    while (end < bytes.length && end < at + Math.max(length, 1) && (bytes[end]! & 0xc0) === 0x80) end++
    const valid = end - at === length ? decodeOne(bytes.subarray(at, end)) : undefined
    out += valid ?? replacement
    at = end
  }
  return out
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeOne(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes)
  } catch {
    return undefined
  }
}

/** The block size of a hash, bytes. */
const blocks: Readonly<Record<string, number>> = { md5: 64, sha1: 64, sha256: 64, sha512: 128 }

/** A reused buffer for a key and the data behind it, unless they are larger. */
const room = Buffer.alloc(4096)

/** RFC 2104, in hexadecimal: the hash of an outer key followed by the hash of an inner key and the data. */
function hmac(data: Uint8Array, key: Uint8Array, name: string): string {
  if (key.length === 0) throw new SqlFailure('GENERIC_INTERNAL_ERROR', 'Empty key')
  const block = blocks[name]!
  const short = key.length > block ? hash(name, key, 'buffer') : key
  const size = block + data.length
  const bytes = size <= room.length ? room : Buffer.alloc(size)
  for (let i = 0; i < block; i++) bytes[i] = (short[i] ?? 0) ^ 0x36
  bytes.set(data, block)
  // As a binary string: hash() takes three times as long to make a buffer.
  const inner = hash(name, bytes.subarray(0, size), 'binary')
  for (let i = 0; i < block; i++) bytes[i]! ^= 0x36 ^ 0x5c
  return hash(name, bytes.subarray(0, block + bytes.write(inner, block, 'latin1')), 'hex')
}

function bigEndian(word: Word64): Uint8Array {
  const out = new Uint8Array(8)
  word.writeBigEndian(out, 0)
  return out
}

const blob = (name: string, call: (bytes: Uint8Array) => Uint8Array): ScalarFunction => ({
  name,
  parameters: ['BLOB'],
  returns: 'BLOB',
  call,
})

export const binaryScripts: readonly ScalarFunction[] = [
  blob('u_reverse_bytes', (bytes) => bytes.toReversed()),
  {
    name: 'u_sha512',
    parameters: ['BLOB'],
    returns: 'VARCHAR',
    call: (bytes: Uint8Array) => hash('sha512', bytes, 'hex'),
  },
  blob('u_xxhash64', (bytes) => bigEndian(xxhash64(bytes))),
  blob('u_murmur3', murmur3),
  blob('u_spooky_32', (bytes) => bigEndian(spookyHash(bytes)).subarray(4)),
  blob('u_spooky_64', (bytes) => bigEndian(spookyHash(bytes))),
  { name: 'u_hmac', parameters: ['BLOB', 'BLOB', 'VARCHAR'], returns: 'VARCHAR', call: hmac },
  { name: 'u_crc32', parameters: ['BLOB'], returns: 'BIGINT', call: (bytes: Uint8Array) => BigInt(crc32(bytes)) },
  { name: 'u_to_base32', parameters: ['BLOB'], returns: 'VARCHAR', call: toBase32 },
  { name: 'u_from_base32', parameters: ['VARCHAR'], returns: 'BLOB', call: fromBase32 },
  {
    name: 'u_from_base64',
    parameters: ['VARCHAR'],
    returns: 'BLOB',
    call: (text: string) => fromBase64(text, /[^A-Za-z0-9+/]/u),
  },
  {
    name: 'u_from_base64url',
    parameters: ['VARCHAR'],
    returns: 'BLOB',
    call: (text: string) => fromBase64(text, /[^\w-]/u),
  },
  { name: 'u_from_utf8', parameters: ['BLOB', 'VARCHAR'], returns: 'VARCHAR', call: fromUtf8 },
]
