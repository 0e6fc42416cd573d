import { readdirSync, readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import type { QueryEvent, QueryEventOf } from '../../src/coordinator/query/stream/events.ts'
import { openLineage, runIdOf, type RunEvent } from '../../src/publishing/open-lineage.ts'
import { FactKeeper } from '../../src/publishing/query-facts.ts'
import { failureOf } from '../../src/shared/engine-error.ts'
import { event, QUERY_ID } from '../support/query-events.ts'
import { isValidMoment, isUuid, recordedOf, streamsOf } from '../support/recorded-events.ts'

const folder = new URL('../fixtures/open-lineage/', import.meta.url)
const ajv = new Ajv2020({ strict: false, allErrors: true })
ajv.addFormat('date-time', isValidMoment)
ajv.addFormat('uri', (text: string) => URL.canParse(text))
ajv.addFormat('uuid', isUuid)
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json')))
  ajv.addSchema(JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as object)

/** Checks the event by the schema that it names, and each facet by the facet's own schema. */
function expectValid(run: RunEvent): void {
  const check = (schema: string, value: unknown): void => {
    const valid = ajv.validate(schema, value)
    expect(valid ? [] : ajv.errors, `${schema}: ${JSON.stringify(value)}`).toEqual([])
  }
  check(run.schemaURL, run)
  const facets = [run.run, run.job, ...run.inputs, ...run.outputs].flatMap(({ facets: all }) => Object.values(all))
  const output = run.outputs.flatMap(({ outputFacets = {} }) => Object.values(outputFacets))
  for (const facet of [...facets, ...output]) check((facet as { _schemaURL: string })._schemaURL, facet)
}

it('The OpenLineage schemas refuse invalid events and facets', () => {
  expect(ajv.validate('https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent', { run: {} })).toBe(false)
  const facet =
    'https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet'
  expect(ajv.validate(facet, { _producer: 'urn:a:b', _schemaURL: facet, fields: { a: {} } })).toBe(false)
})

const KEY = Buffer.alloc(32, 7)

/** Returns the messages for the events of a query, parsed. */
async function reported(events: readonly QueryEvent[], statements = false): Promise<readonly RunEvent[]> {
  const recorded = recordedOf(events)
  const keeper = new FactKeeper(streamsOf(recorded))
  const publication = openLineage({ namespace: 'quipu://tests', statements, key: KEY })
  const runs: RunEvent[] = []
  for (const one of recorded) {
    const facts = keeper.take(one)
    const message = publication.types.has(one.type) ? await publication.messageOf(one, facts) : undefined
    if (message === undefined) continue
    expect(message.key).toBe(QUERY_ID)
    expect(message.text).not.toContain('\n')
    const run = JSON.parse(message.text) as RunEvent
    expectValid(run)
    runs.push(run)
  }
  return runs
}

type Planned = QueryEventOf<'QueryPlanned'>['data']

const source = (column: string, more: object = {}) => ({ source: `lake.s.${column}`, indirect: [], ...more })

const lineage: Planned['lineage'] = {
  columns: [
    { position: 0, name: 'a', sources: [source('o.id', { direct: 'IDENTITY' })] },
    {
      position: 1,
      name: 'b',
      sources: [
        source('o.total', { direct: 'AGGREGATION', indirect: ['WINDOW'], masked: true }),
        source('dotted.t.c.d', { direct: 'TRANSFORMATION' }),
      ],
    },
  ],
  rows: [source('o.id', { indirect: ['FILTER', 'JOIN'] })],
}

const planned: Partial<Planned> = {
  queryType: 'INSERT',
  updateType: 'CREATE TABLE',
  tables: [
    { catalog: 'lake', schema: 's', table: 'o', columns: ['id', 'total'], mode: 'READ', snapshot: '7' },
    { catalog: 'lake', schema: 's', table: 'dotted.t', columns: ['c.d'], mode: 'READ' },
    { catalog: 'lake', schema: 's', table: 't', columns: ['a', 'b'], mode: 'WRITE' },
  ],
  lineage,
}

const columns = [
  { name: 'a', type: 'bigint', nullable: true },
  { name: 'b', type: 'double', nullable: true },
]
const change = { kind: 'createTable', schema: 's', table: 't', columns, replace: false } as const

const writing: readonly QueryEvent[] = [
  event('QueryCreated', 0, { sql: "CREATE TABLE t AS SELECT 'hidden'" }),
  event('QueryPlanned', 1, planned),
  event('WritePrepared', 2, {
    operation: 'createTable',
    rows: 3,
    bytes: 40,
    prepared: { catalog: 'lake', queryId: QUERY_ID, change, baseVersion: 0, columns, files: [] },
  }),
  event('WriteCommitted', 3, { version: 1, outcome: 'committed' }),
  event('QueryFinished', 4),
]

describe('OpenLineage runs of statements', () => {
  it('name the source columns of each written column, and how they contribute', async () => {
    const [start, complete] = await reported(writing)
    expect(start).toMatchObject({ eventType: 'START', inputs: [], outputs: [] })
    expect(complete).toMatchObject({
      eventType: 'COMPLETE',
      inputs: [
        {
          namespace: 'quipu://tests',
          name: 'lake.s.o',
          facets: { schema: { fields: [{ name: 'id' }, { name: 'total' }] }, version: { datasetVersion: '7' } },
        },
        { name: 'lake.s.dotted.t' },
      ],
      outputs: [
        {
          name: 'lake.s.t',
          facets: {
            schema: {
              fields: [
                { name: 'a', type: 'bigint' },
                { name: 'b', type: 'double' },
              ],
            },
            lifecycleStateChange: { lifecycleStateChange: 'CREATE' },
            version: { datasetVersion: '1' },
          },
          outputFacets: { outputStatistics: { rowCount: 3, size: 40 } },
        },
      ],
    })
    const facets = complete!.outputs[0]!.facets as { columnLineage: { fields: object; dataset: object } }
    const field = (name: string, of: string, ...transformations: object[]) => ({
      namespace: 'quipu://tests',
      name,
      field: of,
      transformations,
    })
    const direct = (subtype: string, masking = false) => ({ type: 'DIRECT', subtype, masking })
    const indirect = (subtype: string, masking = false) => ({ type: 'INDIRECT', subtype, masking })
    expect(facets.columnLineage.fields).toEqual({
      a: { inputFields: [field('lake.s.o', 'id', direct('IDENTITY'))] },
      b: {
        inputFields: [
          field('lake.s.o', 'total', direct('AGGREGATION', true), indirect('WINDOW', true)),
          field('lake.s.dotted.t', 'c.d', direct('TRANSFORMATION')),
        ],
      },
    })
    expect(facets.columnLineage.dataset).toEqual([field('lake.s.o', 'id', indirect('FILTER'), indirect('JOIN'))])
  })

  it('share one run id within a query, and one job name for the same statement', async () => {
    const [start, complete] = await reported(writing)
    expect(complete!.run.runId).toBe(start!.run.runId)
    expect(complete!.job.name).toBe(start!.job.name)
    expect(start!.job.name).toMatch(/^statement\.[0-9a-f]{16}$/)
    const [other] = await reported([event('QueryCreated', 0, { sql: 'SELECT 2' })])
    expect(other!.job.name).not.toBe(start!.job.name)
    expect(runIdOf('a', '2026-01-02T03:04:05.000Z')).not.toBe(runIdOf('b', '2026-01-02T03:04:05.000Z'))
  })

  it('contain no SQL text and no error message unless statements are published', async () => {
    const failing = [
      event('QueryCreated', 0, { sql: "SELECT CAST('hidden' AS bigint)" }),
      event('QueryFailed', 1, { failure: failureOf('INVALID_CAST_ARGUMENT', "Cannot cast 'hidden' to bigint") }),
    ]
    expect(JSON.stringify(await reported(failing))).not.toContain('hidden')
    const failure = failureOf('INVALID_CAST_ARGUMENT', 'Value cannot be cast to date: hidden')
    const [, ended] = await reported([failing[0]!, event('QueryFailed', 1, { failure })])
    expect(ended!.run.facets['errorMessage']).toMatchObject({ message: 'INVALID_CAST_ARGUMENT' })
    expect(JSON.stringify(await reported(writing))).not.toContain('hidden')
    const [start, fail] = await reported(failing, true)
    expect(start!.job.facets['sql']).toMatchObject({ query: "SELECT CAST('hidden' AS bigint)" })
    expect(fail).toMatchObject({
      eventType: 'FAIL',
      run: { facets: { errorMessage: { message: "INVALID_CAST_ARGUMENT: Cannot cast 'hidden' to bigint" } } },
    })
  })

  it('contain no characters that a text database refuses, so that one message never blocks others', async () => {
    const created = event('QueryCreated', 0, { sql: 'SELECT \u0000 \ud800' }) as QueryEventOf<'QueryCreated'>
    const session = { ...created.data.session, source: `${'x'.repeat(99)}\u{1f600}`, user: 'a\u0000b' }
    const [start] = await reported([{ ...created, data: { ...created.data, session } }], true)
    expect(JSON.stringify(start)).not.toMatch(/\\u0000|\\ud[89a-f]/)
    expect(start!.job.facets['sql']).toMatchObject({ query: 'SELECT \ufffd \ufffd' })
  })

  it.each([
    ['USER_CANCELED', 'ABORT'],
    ['ABANDONED_QUERY', 'ABORT'],
    ['ADMINISTRATIVELY_KILLED', 'ABORT'],
    ['ADMINISTRATIVELY_PREEMPTED', 'ABORT'],
    ['DIVISION_BY_ZERO', 'FAIL'],
    ['EXCEEDED_TIME_LIMIT', 'FAIL'],
  ] as const)('end %s with %s, and keep the planned inputs', async (name, eventType) => {
    const ended = [...writing.slice(0, 2), event('QueryFailed', 4, { failure: failureOf(name, 'so') })]
    const [, end] = await reported(ended)
    expect(end).toMatchObject({ eventType, outputs: [] })
    expect(end!.inputs.map(({ name: dataset }) => dataset)).toEqual(['lake.s.o', 'lake.s.dotted.t'])
  })

  it('have no output if the statement changed nothing', async () => {
    const settled = [writing[0]!, writing[1]!, writing.at(-1)!]
    expect((await reported(settled)).at(-1)).toMatchObject({ eventType: 'COMPLETE', outputs: [] })
  })

  it('report a dropped table, and the sources of a view', async () => {
    const endingOf = async (operation: 'dropTable' | 'createView', plan: Partial<Planned>) => {
      const view = { sql: 'SELECT 1', columns, runAsInvoker: false }
      const made =
        operation === 'dropTable'
          ? ({ kind: operation, schema: 's', table: 't' } as const)
          : ({ kind: operation, schema: 's', table: 't', definition: view, replace: false } as const)
      return (
        await reported([
          event('QueryCreated'),
          event('QueryPlanned', 1, { queryType: 'DATA_DEFINITION', ...plan }),
          event('WritePrepared', 2, {
            operation,
            prepared: { catalog: 'lake', queryId: QUERY_ID, change: made, baseVersion: 1, columns: [], files: [] },
          }),
          event('WriteCommitted', 3, { version: 2, outcome: 'committed' }),
          event('QueryFinished', 4),
        ])
      ).at(-1)!
    }
    const dropped = await endingOf('dropTable', {})
    expect(Object.keys(dropped.outputs[0]!.facets)).toEqual(['lifecycleStateChange'])
    const viewed = await endingOf('createView', { lineage: { columns: [lineage.columns[0]!], rows: [] } })
    expect(viewed.inputs).toEqual([{ namespace: 'quipu://tests', name: 'lake.s.o', facets: {} }])
    expect(viewed.outputs[0]!.facets).toMatchObject({
      datasetType: { datasetType: 'VIEW' },
      columnLineage: { fields: { a: { inputFields: [{ name: 'lake.s.o', field: 'id' }] } } },
    })
  })

  it('are absent for forgotten events', async () => {
    const forgotten = recordedOf(writing).map((one) => ({ ...one, data: null, forgotten: true as const }))
    const keeper = new FactKeeper(streamsOf(forgotten))
    const publication = openLineage({ namespace: 'n', statements: true, key: KEY })
    for (const one of forgotten) expect(await publication.messageOf(one, keeper.take(one))).toBeUndefined()
  })
})

describe('The facts that `FactKeeper` keeps', () => {
  it('come from the log again for large statements and for queries that began earlier', async () => {
    const long = recordedOf([event('QueryCreated', 0, { sql: 'x'.repeat(20_000) }), event('QueryFinished', 1)])
    const short = recordedOf([event('QueryCreated', 0, { sql: 'x' }), event('QueryFinished', 1)])
    for (const [events, reads] of [
      [long, 1],
      [short, 0],
      [long.slice(1), 1],
      [short.slice(1), 1],
    ] as const) {
      const log = streamsOf(events.length === 1 && events[0] === long[1] ? long : events.length === 1 ? short : events)
      const keeper = new FactKeeper(log)
      for (const one of events) {
        const facts = keeper.take(one)
        if (one.type === 'QueryFinished') expect((await facts()).created?.sql).toMatch(/^x+$/)
      }
      expect(log.reads).toBe(reads)
    }
  })
})
