import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HoldBytes } from '../../../../src/coordinator/clusters/relay/counted-bytes.ts'
import { EngineError } from '../../../../src/shared/engine-error.ts'
import { AnswerNotRead, ClusterLost, type RemoteAnswer } from '../../../../src/coordinator/clusters/relay/relay-port.ts'
import { readRemoteAnswer } from '../../../../src/coordinator/clusters/relay/remote-answer.ts'

const ID = '20261127_115943_00001_abcde'
const BASE = 'http://elsewhere.example:8080'
const STATS = { state: 'RUNNING', progressPercentage: 12.5, rootStage: { stageId: '0', subStages: [] } }

/** Texts that could be mistaken for the limits of the rows. */
const TRAPS = ['],"stats":{', '"data":[', '","data":[', 'data', 'stats', '\\', '"', '}]}', '[[', 'é😀', '']

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.constantFrom(...TRAPS), { maxLength: 4 }).map((parts) => parts.join('')),
)
const { value } = fc.letrec<{ value: unknown; map: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(text, fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('map'),
  ),
  map: fc
    .array(fc.tuple(fc.oneof(text, fc.constantFrom('data', 'stats', 'a')), tie('value')), { maxLength: 3 })
    .map((entries) => Object.fromEntries(entries)),
}))
// A row with the very text at which the rows end.
const trapRow = fc
  .tuple(value, value, value)
  .map(([a, b, c]) => [{ x: [a], stats: { b }, y: [{ z: [], stats: { c } }] }])
const rows = fc.array(fc.oneof(fc.array(value, { maxLength: 4 }), trapRow), { maxLength: 5 })
const columns = fc.array(
  fc.record({ name: text, type: text, typeSignature: fc.record({ rawType: text, arguments: fc.array(value) }) }),
  { maxLength: 3 },
)
const answers = fc
  .record({ columns, rows, warnings: fc.array(value, { maxLength: 2 }), updateType: text, stats: value })
  .map(({ columns: given, rows: data, warnings, updateType, stats }) => ({
    id: ID,
    infoUri: `${BASE}/ui/query.html?${ID}`,
    nextUri: `${BASE}/v1/statement/executing/${ID}/y0123/2`,
    columns: given,
    data,
    stats: { ...STATS, stats },
    warnings,
    updateType,
  }))

async function* chunksOf(parts: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* parts
}

let closed: number

function read(parts: readonly Buffer[], hold?: HoldBytes): Promise<RemoteAnswer> {
  closed = 0
  return readRemoteAnswer({
    cluster: 'a',
    chunks: chunksOf(parts),
    close: () => void closed++,
    headers: [],
    isId: (id) => id === ID,
    hold,
  })
}

async function rowsOf({ data }: RemoteAnswer): Promise<string | undefined> {
  if (!data) return undefined
  const parts: Buffer[] = []
  for await (const part of data) parts.push(part)
  return Buffer.concat(parts).toString('utf8')
}

const lost = (reason: string) => expect.objectContaining({ reason })

describe('An answer of a cluster', () => {
  it('is read as JSON.parse reads it, wherever its chunks are cut', async () => {
    await fc.assert(
      fc.asyncProperty(answers, fc.infiniteStream(fc.integer({ min: 1, max: 40 })), async (answer, sizes) => {
        const whole = Buffer.from(JSON.stringify(answer))
        const parsed = JSON.parse(whole.toString()) as typeof answer
        const drawn: Buffer[] = []
        for (let at = 0; at < whole.length;) {
          const size = sizes.next().value as number
          drawn.push(whole.subarray(at, at + size))
          at += size
        }
        const bytes = [...whole].map((_, at) => whole.subarray(at, at + 1))
        for (const parts of [[whole], bytes, drawn]) {
          const found = await read(parts)
          expect(found.head).toEqual({
            id: ID,
            nextUri: `/v1/statement/executing/${ID}/y0123/2`,
            columns: parsed.columns,
          })
          expect(await rowsOf(found)).toBe(JSON.stringify(answer.data))
          const { stats, warnings, updateType } = parsed
          const rowsBytes = Buffer.byteLength(JSON.stringify(answer.data))
          expect(await found.tail).toEqual({ stats, warnings, updateType, rowsBytes, rows: answer.data.length })
        }
      }),
      { numRuns: 150 },
    )
  })

  it('is the same when it is cut in two at any position', async () => {
    const data = [
      ['],"stats":{', 'é', { a: [1], stats: { b: [2] }, c: [{ d: [3], stats: {} }] }],
      ['"data":[', '\\"', []],
    ]
    const answer = { data: 'no', x: { data: [1] }, id: ID, columns: [{ name: 'data', type: 'x' }] }
    const whole = Buffer.from(
      `${JSON.stringify(answer).slice(0, -1).replace('"data":"no",', '"y":"data",')},"data":${JSON.stringify(data)},"stats":{"a":"]}"},"warnings":[]}`,
    )
    for (let at = 0; at <= whole.length; at++) {
      const found = await read([whole.subarray(0, at), whole.subarray(at)])
      expect(found.head.columns).toEqual(answer.columns)
      expect(await rowsOf(found)).toBe(JSON.stringify(data))
      expect((await found.tail).stats).toEqual({ a: ']}' })
    }
  })

  it('may have blanks between its members, and has no data if it has no rows', async () => {
    const spaced = Buffer.from(`{ "id" : "${ID}" , "data" : [ [1] ],"stats":{"a":1}}\n`)
    expect(JSON.parse((await rowsOf(await read([spaced])))!)).toEqual([[1]])
    for (const data of ['', ',"data":null']) {
      const found = await read([Buffer.from(`{"id":"${ID}"${data},"stats":{},"updateType":"SET","updateCount":7}`)])
      expect(found.data).toBeUndefined()
      const empty = { rowsBytes: 0, rows: 0 }
      expect(await found.tail).toEqual({ stats: {}, warnings: [], updateType: 'SET', updateCount: 7, ...empty })
    }
  })

  it('passes the parts of large rows on as they come, without copies', async () => {
    const row = Buffer.from(`[${'"x",'.repeat(1000)}1]`)
    const part = Buffer.from(`${`${row},`.repeat(20)}`)
    const chunks = [
      Buffer.from(`{"id":"${ID}","data":[`),
      ...Array.from({ length: 50 }, () => Buffer.from(part)),
      Buffer.from('[1]],"stats":{}}'),
    ]
    const found = await read(chunks)
    const parts: Buffer[] = []
    for await (const each of found.data!) parts.push(each)
    expect(parts.filter(({ buffer }) => chunks.every((chunk) => chunk.buffer !== buffer))).toEqual([])
    const tail = await found.tail
    expect(tail.rowsBytes).toBe(50 * part.length + '[[1]]'.length)
    // The rows of a large answer are not counted.
    expect(tail.rows).toBeUndefined()
  })

  it('has no stacks of failures', async () => {
    const inner = { type: 'x.Inner', message: 'why', suppressed: [], stack: ['at x(y)'] }
    const error = {
      message: 'bad',
      errorCode: 65536,
      errorName: 'GENERIC_INTERNAL_ERROR',
      errorType: 'INTERNAL_ERROR',
      errorLocation: { lineNumber: 1, columnNumber: 8 },
      failureInfo: {
        type: 'x.Outer',
        message: 'bad',
        cause: inner,
        suppressed: [inner],
        stack: ['io.trino.A.b(A.java:1)'],
        errorInfo: { code: 65536, name: 'GENERIC_INTERNAL_ERROR', type: 'INTERNAL_ERROR' },
      },
    }
    const found = await read([Buffer.from(JSON.stringify({ id: ID, stats: STATS, error, warnings: [] }))])
    const clean = { ...inner, stack: [] }
    expect((await found.tail).error).toEqual({
      ...error,
      failureInfo: { ...error.failureInfo, stack: [], cause: clean, suppressed: [clean] },
    })
  })

  it.each([
    ['text that is not JSON', '<html>'],
    ['an answer about another query', '{"id":"20261127_115943_00002_abcde","stats":{}}'],
    ['an address of another query', `{"id":"${ID}","nextUri":"http://x/v1/statement/queued/other/1","stats":{}}`],
    ['an address that is none', `{"id":"${ID}","nextUri":"//x/${ID}/1","stats":{}}`],
    ['rows that are no array', `{"id":"${ID}","data":{"encoding":"json"},"stats":{}}`],
    ['rows without an end', `{"id":"${ID}","data":[[1]]}`],
    ['a cut answer', `{"id":"${ID}","data":[[1]],"stats":{"a":`],
    ['an answer with more behind it', `{"id":"${ID}","data":[[1]],"stats":{}}x`],
    ['no figures', `{"id":"${ID}"}`],
  ])('is refused as nonsense for %s', async (_, body) => {
    await expect(read([Buffer.from(body)])).rejects.toEqual(lost('nonsense'))
    expect(closed).toBe(1)
  })

  it('is refused with more than 4 MB before or behind the rows', async () => {
    const mega = Buffer.from(' '.repeat(1024 * 1024))
    const many = Array.from({ length: 5 }, () => mega)
    await expect(read([Buffer.from('{'), ...many])).rejects.toEqual(lost('nonsense'))
    await expect(read([Buffer.from(`{"id":"${ID}","data":[[1]],"stats":{`), ...many])).rejects.toEqual(lost('nonsense'))
  })

  it('counts the members before and behind its rows as memory until they were read', async () => {
    let [held, most] = [0, 0]
    const hold: HoldBytes = (bytes) => {
      most = Math.max(most, (held += bytes))
      return () => void (held -= bytes)
    }
    const mega = ' '.repeat(1_000_000)
    const parts = [`{"id":"${ID}",${mega}"data":[[1]]`, `,"stats":{${mega}}}`].map((part) => Buffer.from(part))
    const found = await read(parts, hold)
    await rowsOf(found)
    await found.tail
    expect(most).toBeGreaterThan(1_900_000)
    expect(held).toBe(0)
    const full = new EngineError('EXCEEDED_GLOBAL_MEMORY_LIMIT', 'no memory')
    const refuse: HoldBytes = () => {
      throw full
    }
    await expect(read([Buffer.from(`{"id":"${ID}",${mega}`), Buffer.from('"stats":{}}')], refuse)).rejects.toBe(full)
    expect(closed).toBe(1)
  })

  it('closes its source, and has no tail, when its reader stops early', async () => {
    const row = Buffer.from(`[${'1,'.repeat(40_000)}1],`)
    const found = await read([Buffer.from(`{"id":"${ID}","data":[`), row, row, row, Buffer.from('[]],"stats":{}}')])
    for await (const _ of found.data!) break
    expect(closed).toBe(1)
    await expect(found.tail).rejects.toBeInstanceOf(AnswerNotRead)
  })

  it('fails in its rows and its tail with the failure of its source', async () => {
    const row = Buffer.from(`[${'1,'.repeat(40_000)}1],`)
    const cut = new ClusterLost('a', 'unreachable', 'cut')
    async function* chunks(): AsyncGenerator<Buffer> {
      yield Buffer.from(`{"id":"${ID}","data":[`)
      yield row
      throw cut
    }
    const found = await readRemoteAnswer({
      cluster: 'a',
      chunks: chunks(),
      close: () => {},
      headers: [],
      isId: () => true,
    })
    await expect(rowsOf(found)).rejects.toBe(cut)
    await expect(found.tail).rejects.toBe(cut)
  })
})
