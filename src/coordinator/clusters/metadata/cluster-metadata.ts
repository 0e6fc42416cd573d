import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { z } from 'zod'
import { PARTITION_KEY, type ConnectorColumn, type SchemaTableName } from '../../../connectors/spi/connector.ts'
import type { ServerMetadata } from '../../../connectors/spi/server-metadata.ts'
import { inSlices } from '../../../security/rules/read-in-slices.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { howToRetry, QuipuError } from '../../../shared/quipu-error.ts'
import { printText, printQuoted } from '../../../sql/syntax/print-names.ts'
import { createRecentValues, type ChangedScope, type MetadataScope } from './recent-values.ts'

/**
 * The catalogs, schemas, tables and columns of a group of clusters. A value is kept for 60 seconds. While no cluster of
 * the group answers, the last value is used for up to 10 minutes. `C` is a cluster.
 */
export interface ClusterMetadata<C> {
  /**
   * The catalogs of one cluster, `system` included. Gives the last list at once, however old it is, and reads a new one
   * in the background: no statement waits for a cluster that it may not need.
   * @returns undefined while the cluster has not answered yet
   */
  catalogs(cluster: C): ReadonlySet<string> | undefined
  /** Resolves once the cluster has answered with its catalogs, or has failed to. Never rejects. */
  listed(cluster: C): Promise<void>
  /** The content of catalogs, as the clusters show it to a user; undefined: to the user of this gateway. */
  of(user: string | undefined): ServerMetadata
  /**
   * Forgets the values that a delegated statement may have changed. With a schema: its tables and columns, and lists of
   * the tables of its whole catalog. With a catalog alone: also the list of its schemas. With neither: everything.
   */
  drop(changed: ChangedScope): void
}

export interface ClusterMetadataDeps<C> {
  readonly group: string
  readonly nameOf: (cluster: C) => string
  /** The clusters of the group that may be asked about a catalog, the best first. */
  readonly open: (catalog: string) => readonly C[]
  /**
   * Runs a statement at a cluster, within limits.
   * @param user undefined: the user of this gateway
   * @returns the rows in the protocol's JSON values
   * @throws EngineError for an error that the cluster answers with; an error that may be retried if it does not answer
   */
  readonly runOnCluster: (cluster: C, sql: string, user: string | undefined) => Promise<readonly (readonly unknown[])[]>
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

/** The number of statements for metadata that run at a group at the same time. */
const MOST_READS = 8
/** A list with more catalogs is not credible, and each statement looks through them. */
const MOST_CATALOGS = 1_000

export function createClusterMetadata<C>(deps: ClusterMetadataDeps<C>): ClusterMetadata<C> {
  const { group, nameOf, open, runOnCluster, now } = deps
  const gate = new Gate(MOST_READS)
  // A group that is away is found out without a request, so its next statement may try again at once.
  const isRemembered = (error: unknown): boolean => !(error instanceof GroupAway)
  const lists = createRecentValues<ReadonlySet<string>>({ weightOf: ({ size }) => size, now, staleMs: Infinity })
  const schemas = createRecentValues<readonly string[]>({ weightOf: ({ length }) => length, now, isRemembered })
  const tables = createRecentValues<readonly SchemaTableName[]>({ weightOf: ({ length }) => length, now, isRemembered })
  const columns = createRecentValues<ColumnsByTable>({ weightOf: columnCount, now, isRemembered })

  const listRead = (cluster: C) => async (): Promise<ReadonlySet<string>> => {
    try {
      const rows = await gate.run(() => runOnCluster(cluster, 'SHOW CATALOGS', undefined))
      const names = new Set(namesOf(await checkedRows(rows, nameRow, nameOf(cluster), 'SHOW CATALOGS')))
      if (names.size <= MOST_CATALOGS) return names
      throw new EngineError('REMOTE_TASK_ERROR', `Cluster ${nameOf(cluster)} lists more than ${MOST_CATALOGS} catalogs`)
    } catch (cause) {
      // The catalogs that the cluster listed before are used, after any error.
      throw new NoList(cause)
    }
  }

  /** Runs a statement at a cluster of the group; if that cluster does not answer, at another one. */
  async function read<T>(
    { catalog, user }: MetadataScope & { readonly catalog: string },
    sql: string,
    row: z.ZodType<T>,
  ): Promise<readonly T[]> {
    const [first, second] = open(catalog)
    if (first === undefined) throw new GroupAway('No cluster of the group is active')
    const at = async (cluster: C): Promise<readonly T[]> =>
      checkedRows(await gate.run(() => runOnCluster(cluster, sql, user)), row, nameOf(cluster), sql)
    try {
      return await at(first)
    } catch (error) {
      if (second === undefined || error instanceof EngineError || howToRetry(error) === 'never') throw error
      return at(second)
    }
  }

  /** Reports a group that is away, or an answer that is no answer of Trino, as the error of a statement. */
  async function answered<T>(value: Promise<T>): Promise<T> {
    try {
      return await value
    } catch (cause) {
      if (cause instanceof EngineError || !(cause instanceof QuipuError)) throw cause
      if (cause.retry === 'never') throw new EngineError('REMOTE_TASK_ERROR', cause.message, { cause })
      const message = `No cluster of the group '${group}' answers, so its catalogs are not known: try again later`
      throw new EngineError('NO_NODES_AVAILABLE', message, { cause, retry: 'later' })
    }
  }

  function of(user: string | undefined): ServerMetadata {
    const scopeOf = <S extends MetadataScope>(scope: S): S => (user === undefined ? scope : { user, ...scope })
    const columnsBy = (scope: SchemaScope, table?: string): Promise<ColumnsByTable> =>
      columns.get(table === undefined ? scope : { ...scope, table }, async () => {
        const tableIs = table === undefined ? '' : ` AND table_name = ${printText(table)}`
        const sql = `SELECT table_name, column_name, data_type, is_nullable, comment, extra_info FROM ${informationSchema(scope)}.columns WHERE table_schema = ${printText(scope.schema)}${tableIs} ORDER BY table_name, ordinal_position`
        return columnsByTable(await read(scope, sql, columnRow))
      })
    return {
      schemas(catalog) {
        const scope = scopeOf({ catalog })
        const sql = `SELECT schema_name FROM ${informationSchema(scope)}.schemata`
        return answered(schemas.get(scope, async () => namesOf(await read(scope, sql, nameRow))))
      },
      async tables(catalog, schema) {
        const whole = tables.fresh(scopeOf({ catalog }))
        if (schema !== undefined && whole) return whole.filter((one) => one.schema === schema)
        const scope = scopeOf({ catalog, ...(schema !== undefined && { schema }) })
        const where = schema === undefined ? '' : ` WHERE table_schema = ${printText(schema)}`
        const sql = `SELECT table_schema, table_name, table_type FROM ${informationSchema(scope)}.tables${where}`
        return answered(tables.get(scope, async () => (await read(scope, sql, tableRow)).map(tableOf)))
      },
      async columns(catalog, schema, table) {
        const scope = scopeOf({ catalog, schema })
        const whole = columns.fresh(scope)
        return (whole ?? (await answered(columnsBy(scope, table)))).get(table)
      },
      allColumns: (catalog, schema) => answered(columnsBy(scopeOf({ catalog, schema }))),
    }
  }

  return {
    catalogs: (cluster) => lists.last({ cluster: nameOf(cluster) }, listRead(cluster)),
    listed: (cluster) => lists.settled({ cluster: nameOf(cluster) }),
    of,
    drop(changed) {
      if (changed.catalog === undefined) lists.drop(changed)
      if (changed.schema === undefined) schemas.drop(changed)
      tables.drop(changed)
      columns.drop(changed)
    },
  }
}

class GroupAway extends QuipuError {
  readonly retry = 'later'
}

class NoList extends QuipuError {
  readonly retry = 'later'

  constructor(cause: unknown) {
    super('The cluster did not list its catalogs', { cause })
  }
}

/** Lets a number of calls run at a time; others wait in the order in which they came. */
class Gate {
  readonly #most: number
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(most: number) {
    this.#most = most
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#most) this.#running++
    // A call that ends passes its room on to the first that waits.
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }
}

type SchemaScope = MetadataScope & { readonly catalog: string; readonly schema: string }
type ColumnsByTable = ReadonlyMap<string, readonly ConnectorColumn[]>

const nameRow = z.tuple([z.string()]).rest(z.unknown())
const tableRow = z.tuple([z.string(), z.string(), z.string()])
const columnRow = z.tuple([
  z.string(),
  z.string(),
  z.string(),
  z.enum(['YES', 'NO']),
  z.string().nullable(),
  z.string().nullable(),
])

/** @throws EngineError REMOTE_TASK_ERROR for rows of another form */
async function checkedRows<T>(
  rows: readonly (readonly unknown[])[],
  row: z.ZodType<T>,
  cluster: string,
  sql: string,
): Promise<readonly T[]> {
  // A schema may have several 100,000 columns, and each row takes microseconds.
  return inSlices(
    rows,
    () => nextLoopPass(),
    (some) => {
      const read = z.array(row).safeParse(some)
      if (read.success) return read.data
      throw new EngineError('REMOTE_TASK_ERROR', `Cluster ${cluster} gave other rows than Trino does for: ${sql}`)
    },
  )
}

function informationSchema({ catalog }: { readonly catalog: string }): string {
  return `${printQuoted(catalog)}.information_schema`
}

/** Names in lower case, as Trino gives them: rules about rights are about names in lower case. */
function namesOf(rows: readonly (readonly [string, ...unknown[]])[]): readonly string[] {
  return rows.map(([name]) => name.toLowerCase())
}

function tableOf([schema, table, type]: z.output<typeof tableRow>): SchemaTableName {
  return { schema: schema.toLowerCase(), table: table.toLowerCase(), kind: type === 'VIEW' ? 'VIEW' : 'TABLE' }
}

function columnsByTable(rows: readonly z.output<typeof columnRow>[]): ColumnsByTable {
  const byTable = new Map<string, ConnectorColumn[]>()
  for (const [table, name, type, nullable, comment, extra] of rows) {
    const key = table.toLowerCase()
    const columns = byTable.get(key) ?? []
    byTable.set(key, columns)
    columns.push({
      name: name.toLowerCase(),
      type,
      nullable: nullable === 'YES',
      ...(comment && { comment }),
      ...(extra === PARTITION_KEY && { partitionKey: true }),
    })
  }
  return byTable
}

function columnCount(byTable: ColumnsByTable): number {
  return [...byTable.values()].reduce((sum, { length }) => sum + length, 0)
}
