import { describe, expect, it } from 'vitest'
import type { RemoteAnswer } from '../../../src/coordinator/clusters/relay/relay-port.ts'
import { explainedAnswer } from '../../../src/coordinator/query/results/explained-answer.ts'
import type { Routed } from '../../../src/coordinator/query/stream/events.ts'

const routed: Routed = {
  to: 'group',
  name: 'big',
  rule: 'größer',
  grade: 'named',
  readOnly: true,
  checked: true,
  bytes: 1_600_000,
  skipped: [{ rule: 'etl', why: 'there is no\ngroup etl' }],
  explains: true,
}
const LINE = "Route: group big, by rule 'größer', 1.53MB; rule 'etl' was skipped: there is no group etl\n"

function answerOf(parts: readonly string[], type = 'varchar(4)'): RemoteAnswer {
  async function* data() {
    for (const part of parts) yield Buffer.from(part)
  }
  const typeSignature = { rawType: 'varchar', arguments: [{ kind: 'LONG', value: 4 }] }
  return {
    head: { id: 'r', columns: [{ name: 'Query Plan', type, typeSignature }] },
    headers: [],
    data: parts.length > 0 ? data() : undefined,
    tail: Promise.resolve({ stats: {}, warnings: [], rowsBytes: 4 }),
  }
}

async function textOf({ data }: RemoteAnswer): Promise<string> {
  const parts: Buffer[] = []
  if (data) for await (const part of data) parts.push(part)
  return Buffer.concat(parts).toString('utf8')
}

describe('The plan that a cluster explains', () => {
  it('begins with the route, and its type has the new length', async () => {
    const answer = explainedAnswer(answerOf(['[["pl', 'än"]]']), routed)
    expect(JSON.parse(await textOf(answer))).toEqual([[`${LINE}plän`]])
    const length = [...LINE].length + 4
    expect(answer.head.columns).toEqual([
      {
        name: 'Query Plan',
        type: `varchar(${length})`,
        typeSignature: { rawType: 'varchar', arguments: [{ kind: 'LONG', value: length }] },
      },
    ])
  })

  it.each([[['[', '["plan"]]']], [['[[', '"plan"]]']], [[' [ [ "', 'plan"]]']], [['[["plan"],["more"]]']]])(
    'begins with the route however its parts are cut: %j',
    async (parts) => {
      const [[first], ...others] = JSON.parse(parts.join('')) as [[string], ...unknown[]]
      expect(JSON.parse(await textOf(explainedAnswer(answerOf(parts), routed)))).toEqual([[LINE + first], ...others])
    },
  )

  it('is passed on before it has arrived whole', async () => {
    async function* endless() {
      yield Buffer.from('[["pl')
      for (;;) yield Buffer.from('a'.repeat(1024))
    }
    const { data } = explainedAnswer({ ...answerOf(['[]']), data: endless() }, routed)
    let text = ''
    for await (const part of data!) if ((text += part.toString()).length > 4096) break
    expect(text.startsWith(`[["${JSON.stringify(LINE).slice(1, -1)}pla`)).toBe(true)
  })

  it.each([
    ['no rows', []],
    ['a row that is no text', ['[[true]]']],
    ['a row that is no text, in parts', ['[', '[', 'true]]']],
    ['an empty list', ['[]']],
    ['blanks alone', [' '.repeat(300), '[["plan"]]']],
  ])('stays as it is with %s', async (_what, parts) => {
    expect(await textOf(explainedAnswer(answerOf(parts), routed))).toBe(parts.join(''))
  })

  it('keeps an unbounded type', () => {
    const { columns } = explainedAnswer(answerOf(['[["plan"]]'], 'varchar'), routed).head
    expect(columns![0]!.type).toBe('varchar')
  })

  it('stays as it is where the statement explains nothing, or no route is recorded', () => {
    const answer = answerOf(['[["plan"]]'])
    const { explains: _, ...plain } = routed as Extract<Routed, { to: 'group' | 'cluster' }>
    const local: Routed = { to: 'local', skipped: [] }
    for (const route of [plain, undefined, local]) expect(explainedAnswer(answer, route)).toBe(answer)
  })
})
