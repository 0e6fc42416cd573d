import type { AttackFamily } from './attack-case.ts'
import { runStatement } from './statement.ts'

const plain = [
  'user',
  'original-user',
  'source',
  'catalog',
  'schema',
  'path',
  'time-zone',
  'language',
  'transaction-id',
  'role',
  'client-capabilities',
  'client-tags',
  'client-info',
  'trace-token',
  'resource-estimate',
  'extra-credential',
  'session',
  'prepared-statement',
  'no-such-header',
  'epoch',
  'relayed-by',
] as const
const others = [
  'traceparent',
  'tracestate',
  'baggage',
  'accept',
  'accept-encoding',
  'content-type',
  'user-agent',
  'forwarded',

  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-for',
  'x-quipu-relayed-by',
  'x-quipu-relayed-for',
  'cookie',
  'authorization',
  'origin',
  'referer',
  'range',
  'if-none-match',
  'last-event-id',
  'expect',
  'te',
  'x-http-method-override',
] as const

/** Session headers of any family with hostile texts: the statement must run or be refused. */
export const sessions: AttackFamily = {
  name: 'sessions',
  weight: 120,
  async run(context) {
    const { random, texts } = context
    const family = random.pick(['x-trino', 'x-presto', 'x-engine'])
    const headers: Record<string, string> = {}
    for (let count = random.whole(1, 5); count > 0; count--) {
      const foreign = random.chance(0.25)
      const name = foreign ? random.pick(others) : `${family}-${random.pick(plain)}`
      // Node itself answers an unknown expectation with 417, before the server sees the request.
      if (name === 'expect') continue
      headers[name] = value()
    }
    if (random.chance(0.1)) headers[`${random.pick(['x-trino', 'x-presto'])}-user`] = texts.header()
    await runStatement(
      context,
      random.pick(['SELECT 1', 'SELECT count(*) FROM tpch.tiny.region', 'SHOW SESSION']),
      headers,
    )

    function value(): string {
      const text = texts.header()
      const kind = random.whole(0, 6)
      if (kind === 0) return `${encodeURIComponent(text)}=${encodeURIComponent(text)}`
      if (kind === 1) return `p=${encodeURIComponent(`SELECT '${text}'`)},q=%zz`
      if (kind === 2) return text.repeat(random.pick([10, 100])).slice(0, 9_000)
      if (kind === 3) return '日本語'.repeat(random.pick([1, 80, 333]))
      if (kind === 4) return Array.from({ length: 200 }, () => 'a=b').join(',')
      return text
    }
  },
}
