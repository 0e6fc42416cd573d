import { describe, expect, it } from 'vitest'
import { createClusterMetadata } from '../../../../src/coordinator/clusters/metadata/cluster-metadata.ts'
import { EngineError } from '../../../../src/shared/engine-error.ts'
import { QuipuError } from '../../../../src/shared/quipu-error.ts'

class NoAnswer extends QuipuError {
  readonly retry = 'later'
}

const ALL_COLUMNS = `SELECT table_name, column_name, data_type, is_nullable, comment, extra_info FROM "hive".information_schema.columns WHERE table_schema = 'sales' ORDER BY table_name, ordinal_position`
const columnsOf = (table: string): string => ALL_COLUMNS.replace(' ORDER BY', ` AND table_name = '${table}' ORDER BY`)
const SCHEMAS = 'SELECT schema_name FROM "hive".information_schema.schemata'
const tablesIn = (catalog: string, where = ''): string =>
  `SELECT table_schema, table_name, table_type FROM ${catalog}.information_schema.tables${where}`
const TABLES = tablesIn('"hive"', ` WHERE table_schema = 'sales'`)

/** A stand-in for the clusters of a group: it answers statements from a table of answers. */
function standIn(withinMs = 600_000) {
  const answers: Record<string, readonly (readonly unknown[])[] | Error> = {
    'SHOW CATALOGS': [['hive'], ['system']],
    [SCHEMAS]: [['information_schema'], ['Sales']],
    [TABLES]: [
      ['sales', 'orders', 'BASE TABLE'],
      ['sales', 'View', 'VIEW'],
    ],
    [columnsOf('orders')]: [
      ['orders', 'id', 'bigint', 'NO', null, 'partition key'],
      ['orders', 'Note', 'varchar(20)', 'YES', 'A note', null],
    ],
    [columnsOf('other')]: [],
    [ALL_COLUMNS]: [
      ['orders', 'id', 'bigint', 'NO', null, null],
      ['view', 'x', 'array(row(a bigint))', 'YES', null, null],
    ],
  }
  const asked: string[] = []
  /** The time that each statement had, milliseconds. */
  const given: number[] = []
  let clock = 0
  let cluster: string | undefined = 'trino-a'
  let second: string | undefined
  let gate: Promise<void> | undefined
  const made = createClusterMetadata<string>({
    group: 'big',
    nameOf: (name) => name,
    keyOf: (name) => `${name} 0badc0de`,
    withinMs: () => withinMs,
    open: () => [...(cluster === undefined ? [] : [cluster]), ...(second === undefined ? [] : [second])],
    async runOnCluster(name, sql, user, ms) {
      given.push(ms)
      asked.push(user === undefined ? `${name}: ${sql}` : `${user} at ${name}: ${sql}`)
      if (name === 'slow') {
        clock += ms
        throw new NoAnswer('no answer in time')
      }
      if (name === 'broken') throw new NoAnswer('connection refused')
      const answer = answers[sql]
      await gate
      if (answer === undefined) throw new Error(`unexpected statement: ${sql}`)
      if (answer instanceof Error) throw answer
      return answer
    },
    now: () => clock,
  })
  return {
    metadata: made.of(undefined),
    made,
    setSecond: (name: string) => void (second = name),
    answers,
    asked,
    given,
    pass: (ms: number) => void (clock += ms),
    setCluster: (name: string | undefined) => void (cluster = name),
    /** Holds answers back. @returns lets them go */
    hold() {
      let open = (): void => {}
      gate = new Promise((resolve) => (open = resolve))
      return () => {
        gate = undefined
        open()
      }
    },
  }
}

describe('The metadata of a group of clusters', () => {
  it('comes from statements in the SQL of Trino, with names in lower case', async () => {
    const { metadata } = standIn()
    expect(await metadata.schemas('hive')).toEqual(['information_schema', 'sales'])
    expect(await metadata.tables('hive', 'sales')).toEqual([
      { schema: 'sales', table: 'orders', kind: 'TABLE' },
      { schema: 'sales', table: 'view', kind: 'VIEW' },
    ])
    expect(await metadata.columns('hive', 'sales', 'orders')).toEqual([
      { name: 'id', type: 'bigint', nullable: false, partitionKey: true },
      { name: 'note', type: 'varchar(20)', nullable: true, comment: 'A note' },
    ])
    expect(await metadata.columns('hive', 'sales', 'other')).toBeUndefined()
    expect([...(await metadata.allColumns('hive', 'sales')).keys()]).toEqual(['orders', 'view'])
  })

  it('quotes names of catalogs and schemas in its statements', async () => {
    const { metadata, answers, asked } = standIn()
    answers[tablesIn('"a""b"', ` WHERE table_schema = 'it''s'`)] = []
    expect(await metadata.tables('a"b', "it's")).toEqual([])
    expect(asked).toHaveLength(1)
  })

  it('is read once for callers at the same time, and a whole list serves its parts', async () => {
    const { metadata, asked } = standIn()
    await Promise.all(['orders', 'orders'].map((table) => metadata.columns('hive', 'sales', table)))
    expect(asked).toEqual([`trino-a: ${columnsOf('orders')}`])
    await metadata.allColumns('hive', 'sales')
    await metadata.columns('hive', 'sales', 'view')
    expect(asked).toHaveLength(2)
  })

  it('is read for each user where the clusters decide about rights', async () => {
    const { made, asked } = standIn()
    await made.of('ana').schemas('hive')
    await made.of('bo').schemas('hive')
    await made.of('ana').schemas('hive')
    expect(asked).toEqual([`ana at trino-a: ${SCHEMAS}`, `bo at trino-a: ${SCHEMAS}`])
  })

  it('comes from another cluster of the group if the first does not answer', async () => {
    const { metadata, asked, setCluster, setSecond } = standIn()
    setCluster('broken')
    setSecond('trino-b')
    expect(await metadata.schemas('hive')).toHaveLength(2)
    expect(asked).toEqual([`broken: ${SCHEMAS}`, `trino-b: ${SCHEMAS}`])
  })

  it('comes from the first or the second cluster within the time limit of one statement', async () => {
    const { metadata, given, setCluster, setSecond } = standIn(10_000)
    setCluster('slow')
    setSecond('trino-b')
    expect(await metadata.schemas('hive')).toHaveLength(2)
    expect(given.reduce((sum, ms) => sum + ms)).toBe(10_000)
    setSecond('slow')
    await expect(metadata.tables('hive', 'sales')).rejects.toMatchObject({
      errorName: 'NO_NODES_AVAILABLE',
      message: expect.stringContaining('no answer in time') as string,
    })
    expect(given.slice(2).reduce((sum, ms) => sum + ms)).toBe(10_000)
  })

  it('is read by 8 statements at a time', async () => {
    const { metadata, answers, asked, hold } = standIn()
    const release = hold()
    for (let i = 0; i < 20; i++) answers[tablesIn('"hive"', ` WHERE table_schema = 's${i}'`)] = []
    const all = Array.from({ length: 20 }, (_, i) => metadata.tables('hive', `s${i}`))
    await new Promise((resolve) => setImmediate(resolve))
    expect(asked).toHaveLength(8)
    release()
    expect(await Promise.all(all)).toHaveLength(20)
  })

  it('is not available when a statement waits too long behind others: the error is NO_NODES_AVAILABLE', async () => {
    const { metadata, answers, hold } = standIn(5)
    const release = hold()
    for (let i = 0; i < 8; i++) answers[tablesIn('"hive"', ` WHERE table_schema = 's${i}'`)] = []
    const all = Array.from({ length: 8 }, (_, i) => metadata.tables('hive', `s${i}`))
    await expect(metadata.schemas('hive')).rejects.toMatchObject({
      errorName: 'NO_NODES_AVAILABLE',
      retry: 'later',
      message: expect.stringContaining("Too many statements about metadata wait for the group 'big'") as string,
    })
    release()
    await Promise.all(all)
    expect(await metadata.schemas('hive')).toHaveLength(2)
  })

  it('lacks comments that are too long, and has the type `oversized` for a type that is too long', async () => {
    const { metadata, answers } = standIn()
    const long = 'x'.repeat(64_001)
    answers[columnsOf('orders')] = [
      ['orders', 'a', 'bigint', 'YES', long, null],
      ['orders', 'b', `row(${long} bigint)`, 'YES', 'short', null],
    ]
    expect(await metadata.columns('hive', 'sales', 'orders')).toEqual([
      { name: 'a', type: 'bigint', nullable: true },
      { name: 'b', type: 'oversized', nullable: true, comment: 'short' },
    ])
  })

  it('takes bounded memory: the values that were used longest ago are dropped', async () => {
    const { metadata, answers, asked } = standIn()
    const comment = 'x'.repeat(64_000)
    const table = (i: number) => metadata.columns('hive', 'sales', `t${i}`)
    for (let i = 0; i < 4; i++) {
      answers[columnsOf(`t${i}`)] = Array.from({ length: 100 }, (_, at) => [
        `t${i}`,
        `c${at}`,
        'x',
        'YES',
        comment,
        null,
      ])
      await table(i)
    }
    await table(3)
    expect(asked).toHaveLength(4)
    await table(0)
    expect(asked).toHaveLength(5)
  })

  it('is fresh for 60 seconds', async () => {
    const { metadata, answers, asked, pass } = standIn()
    await metadata.schemas('hive')
    answers[SCHEMAS] = [['sales']]
    pass(59_999)
    expect(await metadata.schemas('hive')).toHaveLength(2)
    pass(1)
    expect(await metadata.schemas('hive')).toEqual(['sales'])
    expect(asked).toHaveLength(2)
  })

  it.each(['no cluster is there', 'the cluster does not answer'])(
    'holds for 10 minutes while %s, and is asked for every 5 seconds at most',
    async (how) => {
      const { metadata, answers, asked, pass, setCluster } = standIn()
      await metadata.schemas('hive')
      const before = answers[SCHEMAS]!
      if (how === 'no cluster is there') setCluster(undefined)
      else answers[SCHEMAS] = new NoAnswer('connection refused')
      pass(60_000)
      for (let times = 0; times < 3; times++) expect(await metadata.schemas('hive')).toHaveLength(2)
      expect(asked).toHaveLength(how === 'no cluster is there' ? 1 : 2)
      pass(539_999)
      expect(await metadata.schemas('hive')).toHaveLength(2)
      pass(5_000)
      const refused = {
        errorName: 'NO_NODES_AVAILABLE',
        retry: 'later',
        message: expect.stringContaining("group 'big'") as string,
      }
      await expect(metadata.schemas('hive')).rejects.toMatchObject(refused)
      const askedSoFar = asked.length
      await expect(metadata.schemas('hive')).rejects.toMatchObject(refused)
      expect(asked).toHaveLength(askedSoFar)
      setCluster('trino-b')
      answers[SCHEMAS] = before
      pass(5_000)
      expect(await metadata.schemas('hive')).toHaveLength(2)
      expect(asked.at(-1)).toBe(`trino-b: ${SCHEMAS}`)
    },
  )

  it('is read at once when a group that was away is back', async () => {
    const { metadata, setCluster } = standIn()
    setCluster(undefined)
    await expect(metadata.schemas('hive')).rejects.toMatchObject({ errorName: 'NO_NODES_AVAILABLE' })
    setCluster('trino-a')
    expect(await metadata.schemas('hive')).toHaveLength(2)
  })

  it('is not kept when the cluster answers with an error, and the caller gets this error', async () => {
    const { metadata, answers, pass } = standIn()
    await metadata.tables('hive', 'sales')
    pass(60_000)
    answers[TABLES] = new EngineError('CATALOG_NOT_FOUND', "Catalog 'hive' not found")
    await expect(metadata.tables('hive', 'sales')).rejects.toMatchObject({ errorName: 'CATALOG_NOT_FOUND' })
    pass(5_000)
    answers[TABLES] = new NoAnswer('connection refused')
    await expect(metadata.tables('hive', 'sales')).rejects.toMatchObject({ errorName: 'NO_NODES_AVAILABLE' })
  })

  it.each([
    [{ catalog: 'hive', schema: 'sales' }, ['tables', 'columns']],
    [{ catalog: 'hive', schema: 'other' }, []],
    [{ catalog: 'hive' }, ['schemata', 'tables', 'columns']],
    [{ catalog: 'pg' }, []],
    [{}, ['schemata', 'tables', 'columns']],
  ])('is read again after a change of %j as far as the change reaches', async (changed, again) => {
    const { made, metadata, asked } = standIn()
    const readAll = async (): Promise<void> => {
      await metadata.schemas('hive')
      await metadata.tables('hive', 'sales')
      await metadata.columns('hive', 'sales', 'orders')
    }
    await readAll()
    asked.length = 0
    made.drop(changed)
    await readAll()
    expect(asked.map((sql) => /(schemata|tables|columns)(?: WHERE|$)/.exec(sql)?.[1])).toEqual(again)
  })

  it.each([
    ['is read again for the whole catalog', undefined, 1],
    ['stays for another schema', 'other', 0],
  ])('%s after a change of a schema', async (_what, schema, times) => {
    const { made, metadata, answers, asked } = standIn()
    answers[tablesIn('"hive"')] = []
    answers[tablesIn('"hive"', ` WHERE table_schema = 'other'`)] = []
    await metadata.tables('hive', schema)
    asked.length = 0
    made.drop({ catalog: 'hive', schema: 'sales' })
    await metadata.tables('hive', schema)
    expect(asked).toHaveLength(times)
  })

  it('shows a table that a delegated statement made, though the catalog was listed as a whole before', async () => {
    const { made, metadata, answers } = standIn()
    answers[tablesIn('"hive"')] = []
    await metadata.tables('hive')
    made.drop({ catalog: 'hive', schema: 'sales' })
    expect(await metadata.tables('hive', 'sales')).toHaveLength(2)
  })

  it('does not come from a read that began before a change', async () => {
    const { made, metadata, answers, hold } = standIn()
    const release = hold()
    const old = metadata.schemas('hive')
    await new Promise((resolve) => setImmediate(resolve))
    made.drop({ catalog: 'hive' })
    answers[SCHEMAS] = [['sales'], ['new']]
    const after = metadata.schemas('hive')
    release()
    expect(await old).toEqual(['information_schema', 'sales'])
    expect(await after).toEqual(['sales', 'new'])
    expect(await metadata.schemas('hive')).toEqual(['sales', 'new'])
  })

  it.each([[[[1]]], [[['x', 'y']]], [[[null]]]])('fails with an error of the cluster for rows %j', async (rows) => {
    const { metadata, answers } = standIn()
    answers[TABLES] = rows
    await expect(metadata.tables('hive', 'sales')).rejects.toMatchObject({ errorName: 'REMOTE_TASK_ERROR' })
  })

  it('reports a bug as it is', async () => {
    const { metadata, answers } = standIn()
    answers[SCHEMAS] = new TypeError('a bug')
    await expect(metadata.schemas('hive')).rejects.toThrow(TypeError)
  })
})

describe('The catalogs of a cluster', () => {
  it('are given at once, and read in the background', async () => {
    const { made, answers, pass } = standIn()
    expect(made.catalogs('trino-a')).toBeUndefined()
    await made.listed('trino-a')
    expect(made.catalogs('trino-a')).toEqual(new Set(['hive', 'system']))
    answers['SHOW CATALOGS'] = [['hive']]
    pass(60_000)
    expect(made.catalogs('trino-a')).toEqual(new Set(['hive', 'system']))
    await made.listed('trino-a')
    expect(made.catalogs('trino-a')).toEqual(new Set(['hive']))
  })

  it.each([new NoAnswer('connection refused'), new EngineError('PERMISSION_DENIED', 'Access Denied'), [[7]]])(
    'stay as they were while the cluster answers with %s',
    async (answer) => {
      const { made, answers, asked, pass } = standIn()
      made.catalogs('trino-a')
      await made.listed('trino-a')
      answers['SHOW CATALOGS'] = answer
      for (let times = 0; times < 3; times++) {
        pass(3_600_000)
        made.catalogs('trino-a')
        await made.listed('trino-a')
        expect(made.catalogs('trino-a')).toEqual(new Set(['hive', 'system']))
      }
      expect(asked).toHaveLength(4)
    },
  )

  it('are not asked for again for 5 s after a cluster did not list them', async () => {
    const { made, answers, asked, pass } = standIn()
    answers['SHOW CATALOGS'] = new NoAnswer('connection refused')
    for (let times = 0; times < 3; times++) {
      expect(made.catalogs('trino-a')).toBeUndefined()
      await made.listed('trino-a')
    }
    expect(asked).toHaveLength(1)
    pass(5_000)
    made.catalogs('trino-a')
    expect(asked).toHaveLength(2)
  })

  it('stay known after a statement changed a catalog', async () => {
    const { made } = standIn()
    made.catalogs('trino-a')
    await made.listed('trino-a')
    made.drop({ catalog: 'hive' })
    expect(made.catalogs('trino-a')).toEqual(new Set(['hive', 'system']))
  })

  it('are read while the greatest allowed number of other statements about metadata runs', async () => {
    const { made, metadata, answers, asked, hold } = standIn()
    const release = hold()
    for (let i = 0; i < 8; i++) answers[tablesIn('"hive"', ` WHERE table_schema = 's${i}'`)] = []
    const all = Array.from({ length: 8 }, (_, i) => metadata.tables('hive', `s${i}`))
    made.catalogs('trino-a')
    await new Promise((resolve) => setImmediate(resolve))
    expect(asked).toContain('trino-a: SHOW CATALOGS')
    release()
    await Promise.all(all)
  })

  it('are refused if a cluster lists too many', async () => {
    const { made, answers } = standIn()
    answers['SHOW CATALOGS'] = Array.from({ length: 1_001 }, (_, i) => [`c${i}`])
    made.catalogs('trino-a')
    await made.listed('trino-a')
    expect(made.catalogs('trino-a')).toBeUndefined()
  })
})
