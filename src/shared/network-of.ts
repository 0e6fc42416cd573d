import { isIPv6 } from 'node:net'

/**
 * The network that counts as one address in limits by address: a client with one IPv6 address has the 2^64 of its
 * network (/64).
 * @returns `-` for undefined; a text that is no address stays unchanged
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return '-'
  const [plain = ''] = address.split('%')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)
  if (mapped) return mapped[1]!
  if (!isIPv6(plain)) return plain
  const { hostname } = new URL(`http://[${plain}]`)
  const [head = '', tail] = hostname.slice(1, -1).split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const all =
    tail === undefined
      ? left
      : [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right]
  return `${all.slice(0, 4).join(':')}::/64`
}
