import { BlockList, isIP } from 'node:net'

/** Whether an address is one of several addresses and ranges. */
export type AddressRanges = (address: string) => boolean

/** Whether a text is an address or a range: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`. */
export function isAddressRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || address.includes('%') || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

/** @param ranges each is an {@link isAddressRange} */
export function addressRanges(ranges: readonly string[]): AddressRanges {
  if (ranges.length === 0) return () => false
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    if (bits === undefined) list.addAddress(address, kindOf(address))
    else list.addSubnet(address, Number(bits), kindOf(address))
  }
  return (address) => isIP(address) !== 0 && list.check(address, kindOf(address))
}

function kindOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6'
}
