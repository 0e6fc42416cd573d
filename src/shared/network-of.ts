import { isIPv6 } from 'node:net'

/**
 * What counts as one address wherever something is bounded by address: who has one of IPv6 has the 2^64 of its network (/64).
 * @returns `-` for undefined; what is no address as it is
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
