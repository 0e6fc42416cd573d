import { describe, expect, it } from 'vitest'
import { createClusterMetadata } from '../../../../src/coordinator/clusters/metadata/cluster-metadata.ts'
import { EngineError } from '../../../../src/shared/engine-error.ts'
import { QuipuError } from '../../../../src/shared/quipu-error.ts'

class NoAnswer extends QuipuError {
  readonly retry = 'later'
}

const COLUMNS = `SELECT table_name, column_name, data_type, is_nullable FROM "hive".information_schema.columns WHERE table_schema = 'sales' ORDER BY table_name, ordinal_position`

/** A stand-in for the clusters of a group: it answers statements from a table of answers. */
function standIn() {
  const answers: Record<string, readonly (readonly unknown[])[] | Error> = {
    'SHOW CATALOGS': [['hive'], ['system']],
    'SHOW SESSION': [
      ['hive.parquet_small_file_threshold', '3MB', '3MB', 'varchar', 'A description'],
      ['query_priority', '1', '1', 'integer', 'A description'],
    ],
    'SELECT schema_name FROM "hive".information_schema.schemata': [['information_schema'], ['sales']],
    [`SELECT table_name FROM "hive".information_schema.tables WHERE table_schema = 'sales'`]: [['orders'], ['view']],
    [COLUMNS]: [
      ['orders', 'id', 'bigint', 'NO'],
      ['orders', 'note', 'varchar(20)', 'YES'],
      ['view', 'x', 'array(row(a bigint))', 'YES'],
    ],
  }
  const asked: string[] = []
  let clock = 0
  let cluster: string | undefined = 'trino-a'
  let gate: Promise<void> | undefined
  const metadata = createClusterMetadata<string>({
    group: 'big',
    anyCluster: () => cluster,
    async runOnCluster(name, sql) {
      asked.push(`${name}: ${sql}`)
      const answer = answers[sql]
      await gate
      if (answer === undefined) throw new Error(`unexpected statement: ${sql}`)
      if (answer instanceof Error) throw answer
      return answer
    },
    now: () => clock,
  })
  return {
    metadata,
    answers,
    asked,
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
  it('comes from statements in the SQL of Trino', async () => {
    const { metadata } = standIn()
    expect(await metadata.catalogs()).toEqual(['hive', 'system'])
    expect(await metadata.schemas('hive')).toEqual(['information_schema', 'sales'])
    expect(await metadata.tables('hive', 'sales')).toEqual(['orders', 'view'])
    expect(await metadata.columns('hive', 'sales', 'orders')).toEqual([
      { name: 'id', type: 'bigint', nullable: false },
      { name: 'note', type: 'varchar(20)', nullable: true },
    ])
    expect(await metadata.columns('hive', 'sales', 'view')).toMatchObject([{ type: 'array(row(a bigint))' }])
    expect(await metadata.columns('hive', 'sales', 'other')).toBeUndefined()
    expect(await metadata.sessionProperties()).toEqual(new Set(['hive.parquet_small_file_threshold', 'query_priority']))
  })

  it('quotes names of catalogs and schemas in its statements', async () => {
    const { metadata, answers, asked } = standIn()
    answers[`SELECT table_name FROM "a""b".information_schema.tables WHERE table_schema = 'it''s'`] = []
    expect(await metadata.tables('a"b', "it's")).toEqual([])
    expect(asked).toHaveLength(1)
  })

  it('is read once for all columns of a schema, and for callers at the same time', async () => {
    const { metadata, asked } = standIn()
    await Promise.all(['orders', 'view', 'other'].map((table) => metadata.columns('hive', 'sales', table)))
    await metadata.columns('hive', 'sales', 'orders')
    expect(asked).toEqual([`trino-a: ${COLUMNS}`])
  })

  it('is fresh for 60 seconds', async () => {
    const { metadata, answers, asked, pass } = standIn()
    await metadata.catalogs()
    answers['SHOW CATALOGS'] = [['hive']]
    pass(59_999)
    expect(await metadata.catalogs()).toEqual(['hive', 'system'])
    pass(1)
    expect(await metadata.catalogs()).toEqual(['hive'])
    expect(asked).toHaveLength(2)
  })

  it.each(['no cluster is there', 'the cluster does not answer'])(
    'holds for 10 minutes while %s, and is asked for every 5 seconds at most',
    async (how) => {
      const { metadata, answers, asked, pass, setCluster } = standIn()
      await metadata.schemas('hive')
      const sql = 'SELECT schema_name FROM "hive".information_schema.schemata'
      const before = answers[sql]!
      if (how === 'no cluster is there') setCluster(undefined)
      else answers[sql] = new NoAnswer('connection refused')
      pass(60_000)
      for (let times = 0; times < 3; times++) expect(await metadata.schemas('hive')).toHaveLength(2)
      expect(asked).toHaveLength(how === 'no cluster is there' ? 1 : 2)
      pass(539_999)
      expect(await metadata.schemas('hive')).toHaveLength(2)
      pass(5_000)
      await expect(metadata.schemas('hive')).rejects.toMatchObject({
        errorName: 'NO_NODES_AVAILABLE',
        retry: 'later',
        message: expect.stringContaining("group 'big'"),
      })
      setCluster('trino-b')
      answers[sql] = before
      expect(await metadata.schemas('hive')).toHaveLength(2)
      expect(asked.at(-1)).toBe(`trino-b: ${sql}`)
    },
  )

  it('is read again as soon as the cluster is back', async () => {
    const { metadata, answers, pass, setCluster } = standIn()
    await metadata.catalogs()
    pass(60_000)
    setCluster(undefined)
    await metadata.catalogs()
    setCluster('trino-a')
    answers['SHOW CATALOGS'] = [['hive']]
    pass(5_000)
    expect(await metadata.catalogs()).toEqual(['hive'])
  })

  it('is not kept when the cluster answers with an error, and the caller gets this error', async () => {
    const { metadata, answers, pass } = standIn()
    const sql = `SELECT table_name FROM "hive".information_schema.tables WHERE table_schema = 'sales'`
    await metadata.tables('hive', 'sales')
    pass(60_000)
    answers[sql] = new EngineError('CATALOG_NOT_FOUND', "Catalog 'hive' not found")
    await expect(metadata.tables('hive', 'sales')).rejects.toMatchObject({ errorName: 'CATALOG_NOT_FOUND' })
    answers[sql] = new NoAnswer('connection refused')
    await expect(metadata.tables('hive', 'sales')).rejects.toMatchObject({ errorName: 'NO_NODES_AVAILABLE' })
  })

  it.each([
    [{ catalog: 'hive', schema: 'sales' }, ['tables', 'columns']],
    [{ catalog: 'hive', schema: 'other' }, []],
    [{ catalog: 'hive' }, ['schemata', 'tables', 'columns']],
    [{ catalog: 'pg' }, []],
    [{}, ['CATALOGS', 'SESSION', 'schemata', 'tables', 'columns']],
  ])('is read again after a change of %j as far as the change reaches', async (changed, again) => {
    const { metadata, asked } = standIn()
    const readAll = async (): Promise<void> => {
      await metadata.catalogs()
      await metadata.sessionProperties()
      await metadata.schemas('hive')
      await metadata.tables('hive', 'sales')
      await metadata.columns('hive', 'sales', 'orders')
    }
    await readAll()
    asked.length = 0
    metadata.drop(changed)
    await readAll()
    expect(asked.map((sql) => /(CATALOGS|SESSION|schemata|tables|columns)(?: WHERE|$)/.exec(sql)?.[1])).toEqual(again)
  })

  it('does not come from a read that began before a change', async () => {
    const { metadata, answers, hold } = standIn()
    const sql = `SELECT table_name FROM "hive".information_schema.tables WHERE table_schema = 'sales'`
    const release = hold()
    const old = metadata.tables('hive', 'sales')
    metadata.drop({ catalog: 'hive', schema: 'sales' })
    answers[sql] = [['orders'], ['view'], ['new']]
    const after = metadata.tables('hive', 'sales')
    release()
    expect(await old).toEqual(['orders', 'view'])
    expect(await after).toEqual(['orders', 'view', 'new'])
    expect(await metadata.tables('hive', 'sales')).toEqual(['orders', 'view', 'new'])
  })

  it('fails with an error of the cluster if its rows have another form', async () => {
    const { metadata, answers } = standIn()
    answers['SHOW CATALOGS'] = [[1]]
    await expect(metadata.catalogs()).rejects.toMatchObject({ errorName: 'REMOTE_TASK_ERROR' })
  })

  it('reports a bug as it is', async () => {
    const { metadata, answers } = standIn()
    answers['SHOW CATALOGS'] = new TypeError('a bug')
    await expect(metadata.catalogs()).rejects.toThrow(TypeError)
  })
})
