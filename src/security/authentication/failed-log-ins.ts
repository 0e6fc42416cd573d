import { isIPv6 } from 'node:net'

/** Failed log-ins, by user and address together, and by address: never by user alone, so that nobody locks another out. */
export interface FailedLogIns {
  /** @returns seconds until this user may try again from there; undefined: now */
  blockedSeconds(user: string, address: string | undefined): number | undefined
  failed(user: string, address: string | undefined): void
  /** Whoever got in may mistype again. */
  succeeded(user: string, address: string | undefined): void
  /** Of how many something is remembered. */
  readonly size: number
}

/** A bucket of failures: `burst` may come at once, then one each `everyMs`. */
interface Rate {
  readonly burst: number
  readonly everyMs: number
}

const OF_USER: Rate = { burst: 5, everyMs: 10_000 }
/** Many people may come from one address. */
const OF_ADDRESS: Rate = { burst: 50, everyMs: 1_000 }
/** Buckets that are kept. The oldest go first, so who fills them loses only what is nearly empty again. */
const MOST = 20_000

export function createFailedLogIns(now: () => number): FailedLogIns {
  /** When a bucket is empty again, milliseconds; the one that was poured into last is the last. */
  const emptyAt = new Map<string, number>()

  function blockedMs(key: string, { burst, everyMs }: Rate): number {
    return (emptyAt.get(key) ?? 0) - now() - (burst - 1) * everyMs
  }

  function pour(key: string, { everyMs }: Rate): void {
    const at = Math.max(emptyAt.get(key) ?? 0, now()) + everyMs
    emptyAt.delete(key)
    emptyAt.set(key, at)
    for (const [old, until] of emptyAt) {
      if (until > now() && emptyAt.size <= MOST) break
      emptyAt.delete(old)
    }
  }

  return {
    get size() {
      return emptyAt.size
    },
    blockedSeconds(user, address) {
      const network = networkOf(address)
      const ofUser = user === '' ? 0 : blockedMs(pairOf(user, network), OF_USER)
      const ms = Math.max(ofUser, blockedMs(network, OF_ADDRESS))
      return ms > 0 ? Math.ceil(ms / 1000) : undefined
    },
    failed(user, address) {
      const network = networkOf(address)
      if (user !== '') pour(pairOf(user, network), OF_USER)
      pour(network, OF_ADDRESS)
    },
    succeeded: (user, address) => void emptyAt.delete(pairOf(user, networkOf(address))),
  }
}

function pairOf(user: string, network: string): string {
  return `${network} ${user.slice(0, 200)}`
}

/** Who has an IPv6 address has 2^64 of them. */
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
