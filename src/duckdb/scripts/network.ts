import { isIPv4, isIPv6 } from 'node:net'
import { invalidArgument, invalidCast, type ScalarFunction } from './scalar-function.ts'

// Addresses are 16 bytes; IPv4 addresses are mapped into ::ffff:0:0/96.
const DOT = 46
const ZERO = 48

function mapped(...quad: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(16)
  bytes[10] = 255
  bytes[11] = 255
  for (let i = 0; i < 4; i++) bytes[12 + i] = quad[i]!
  return bytes
}

/** Reads the texts that `isIPv4` accepts, one character at a time, which is faster. */
function quadOf(text: string): Uint8Array | undefined {
  const bytes = mapped(0, 0, 0, 0)
  let index = 12
  let number = -1
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (char === DOT) {
      if (number < 0 || index === 15) return undefined
      bytes[index++] = number
      number = -1
    } else {
      const digit = char - ZERO
      // A number has no leading zeros.
      if (digit < 0 || digit > 9 || number === 0) return undefined
      number = number < 0 ? digit : number * 10 + digit
      if (number > 255) return undefined
    }
  }
  if (number < 0 || index !== 15) return undefined
  bytes[15] = number
  return bytes
}

function bytesOf(text: string): Uint8Array | undefined {
  const quad = quadOf(text)
  if (quad !== undefined) return quad
  if (!isIPv6(text) || text.includes('%')) return undefined
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text)
  const plain =
    dotted === null
      ? text
      : `${dotted[1]}${((Number(dotted[2]) << 8) | Number(dotted[3])).toString(16)}:${((Number(dotted[4]) << 8) | Number(dotted[5])).toString(16)}`
  const [head = '', tail] = plain.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0')
  return Uint8Array.from(
    [...left, ...zeros, ...right].flatMap((group) => [
      Number.parseInt(group, 16) >> 8,
      Number.parseInt(group, 16) & 255,
    ]),
  )
}

/** Whether a text is an address of either version. */
export function isAddress(text: string): boolean {
  return bytesOf(text) !== undefined
}

function parse(text: string): Uint8Array {
  const bytes = bytesOf(text)
  if (bytes === undefined) throw invalidCast(`Cannot cast value to IPADDRESS: ${text}`)
  return bytes
}

function fromBinary(bytes: Uint8Array): Uint8Array {
  if (bytes.length === 4) return mapped(...bytes)
  if (bytes.length !== 16) throw invalidCast(`Invalid InetAddress binary length: ${bytes.length}`)
  return bytes
}

function isMapped(bytes: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (bytes[i] !== 0) return false
  return bytes[10] === 255 && bytes[11] === 255
}

/** The text by RFC 5952; mapped addresses as dotted quads. */
function textOf(bytes: Uint8Array): string {
  if (isMapped(bytes)) return `${bytes[12]}.${bytes[13]}.${bytes[14]}.${bytes[15]}`
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16))
  let best = { at: -1, length: 1 }
  for (let at = 0; at < 8; at++) {
    let length = 0
    while (at + length < 8 && groups[at + length] === '0') length++
    if (length > best.length) best = { at, length }
  }
  if (best.at < 0) return groups.join(':')
  return `${groups.slice(0, best.at).join(':')}::${groups.slice(best.at + best.length).join(':')}`
}

interface Network {
  readonly bytes: Uint8Array
  /** The number of bits that count. */
  readonly bits: number
}

/**
 * Parses a network. For a dotted quad the prefix counts its own bits, and the bits behind it must be zero; for an IPv6
 * address it counts all 128 bits.
 */
function parseNetwork(cidr: string): Network {
  const [, network, prefix] = /^([^/]*)\/([+-]?\d+)$/.exec(cidr) ?? []
  if (network === undefined) throw invalidArgument('Invalid CIDR')
  const bytes = bytesOf(network)
  if (bytes === undefined) throw invalidArgument('Invalid network IP address')
  const length = Number(prefix)
  if (length < 0) throw invalidArgument('Invalid prefix length')
  const v4 = isIPv4(network)
  const bits = length + (v4 ? 96 : 0)
  if (bits > 128) throw invalidArgument('Invalid CIDR')
  for (let bit = bits; v4 && bit < 128; bit++) {
    if ((bytes[bit >> 3]! & (128 >> (bit & 7))) !== 0) throw invalidArgument('Invalid CIDR')
  }
  return { bytes, bits }
}

let last: (Network & { readonly cidr: string }) | undefined

function cidrContains(cidr: string, address: Uint8Array): boolean {
  if (last?.cidr !== cidr) last = { cidr, ...parseNetwork(cidr) }
  const { bytes, bits } = last
  const whole = bits >> 3
  for (let i = 0; i < whole; i++) if (bytes[i] !== address[i]) return false
  return whole === 16 || ((bytes[whole]! ^ address[whole]!) & (0xff00 >> (bits & 7)) & 0xff) === 0
}

export const networkScripts: readonly ScalarFunction[] = [
  { name: 'u_ip_parse', parameters: ['VARCHAR'], returns: 'BLOB', call: parse },
  { name: 'u_ip_from_binary', parameters: ['BLOB'], returns: 'BLOB', call: fromBinary },
  { name: 'u_ip_text', parameters: ['BLOB'], returns: 'VARCHAR', call: textOf },
  { name: 'u_cidr_contains', parameters: ['VARCHAR', 'BLOB'], returns: 'BOOLEAN', call: cidrContains },
]
