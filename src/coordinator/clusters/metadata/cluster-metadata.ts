import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { z } from 'zod'
import { PARTITION_KEY, type ConnectorColumn, type SchemaTableName } from '../../../connectors/spi/connector.ts'
import type { ServerMetadata } from '../../../connectors/spi/server-metadata.ts'
import { inSlices } from '../../../security/rules/read-in-slices.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { howToRetry, QuipuError } from '../../../shared/quipu-error.ts'
import { printText, printQuoted } from '../../../sql/syntax/print-names.ts'
import { NotWanted, QueueFull, ReadQueue } from './read-queue.ts'
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
  /** The name of a cluster, for messages. */
  readonly nameOf: (cluster: C) => string
  /** A text that identifies the cluster together with the present text of its file. */
  readonly keyOf: (cluster: C) => string
  /** The clusters of the group that may be asked about a catalog, the best first. */
  readonly open: (catalog: string) => readonly C[]
  /**
   * Runs a statement at a cluster, within limits.
   * @param user undefined: the user of this gateway
   * @param withinMs how long it may take, milliseconds
   * @returns the rows in the protocol's JSON values
   * @throws EngineError for an error that the cluster answers with; an error that may be retried if it does not answer
   */
  readonly runOnCluster: (
    cluster: C,
    sql: string,
    user: string | undefined,
    withinMs: number,
  ) => Promise<readonly (readonly unknown[])[]>
  /** How long a statement may take at a cluster, milliseconds, with the time that it waits for others. */
  readonly withinMs: (cluster: C) => number
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

/** How many statements about metadata run at a group at the same time, and how many may wait. */
const READS = { atOnce: 8, mostWaiting: 1_000, mostWaitingOfUser: 128 } as const
/** The share of the time limit in which the first of two clusters must answer. The second cluster gets the rest. */
const OF_FIRST = 0.6
const MIB = 1024 * 1024
/** The memory of the values of a group, bytes. */
const MEMORY = { lists: 8 * MIB, schemas: 4 * MIB, tables: 16 * MIB, columns: 36 * MIB } as const
/** The memory that a row of a value takes besides its texts, bytes. */
const ROW_BYTES = 100
/** The most characters of a comment and of a type. A longer comment is left out. */
const MOST_TEXT = 64_000
/** Stands for a type whose text is too long. No server has a type with this name. */
const OVERSIZED = 'oversized'
/** A list with more catalogs is not credible, and each statement looks through them. */
const MOST_CATALOGS = 1_000

export function createClusterMetadata<C>(deps: ClusterMetadataDeps<C>): ClusterMetadata<C> {
  const { group, nameOf, keyOf, open, withinMs, runOnCluster, now } = deps
  const queue = new ReadQueue({ ...READS, now })
  // The error that a group is away or busy needs no request, so the next statement may try again at once.
  const isRemembered = (error: unknown): boolean => !(error instanceof GroupAway || error instanceof QueueFull)
  const kept = <T>(what: keyof typeof MEMORY, weightOf: (value: T) => number) => ({
    weightOf,
    mostBytes: MEMORY[what],
    now,
    isRemembered,
  })
  const lists = createRecentValues<ReadonlySet<string>>({ ...kept('lists', bytesOfNames), staleMs: Infinity })
  const schemas = createRecentValues<readonly string[]>(kept('schemas', bytesOfNames))
  const tables = createRecentValues<readonly SchemaTableName[]>(kept('tables', bytesOfTables))
  const columns = createRecentValues<ColumnsByTable>(kept('columns', bytesOfColumns))

  const listRead = (cluster: C) => async (): Promise<ReadonlySet<string>> => {
    try {
      // It runs once at a time at each cluster, and does not wait for other reads.
      const rows = await runOnCluster(cluster, 'SHOW CATALOGS', undefined, withinMs(cluster))
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
    unwanted: AbortSignal,
  ): Promise<readonly T[]> {
    const [first, second] = open(catalog)
    if (first === undefined) throw new GroupAway('No cluster of the group is active')
    const until = now() + withinMs(first)
    const at = async (cluster: C, ms: number): Promise<readonly T[]> => {
      const rows = await queue.run(user, ms, (leftMs) => runOnCluster(cluster, sql, user, leftMs), unwanted)
      return checkedRows(rows, row, nameOf(cluster), sql)
    }
    try {
      return await at(first, second === undefined ? withinMs(first) : withinMs(first) * OF_FIRST)
    } catch (error) {
      const isQueued = error instanceof QueueFull || error instanceof NotWanted
      if (second === undefined || isQueued || error instanceof EngineError || howToRetry(error) === 'never') throw error
      return at(second, Math.max(1, until - now()))
    }
  }

  /** Reports a group that is away, or an answer that is no answer of Trino, as the error of a statement. */
  async function answered<T>(value: Promise<T>): Promise<T> {
    try {
      return await value
    } catch (cause) {
      if (cause instanceof EngineError || !(cause instanceof QuipuError)) throw cause
      if (cause.retry === 'never') throw new EngineError('REMOTE_TASK_ERROR', cause.message, { cause })
      const message =
        cause instanceof QueueFull
          ? `Too many statements about metadata wait for the group '${group}': try again later (${cause.message})`
          : `No cluster of the group '${group}' answers, so its catalogs are not known: try again later (${cause.message})`
      throw new EngineError('NO_NODES_AVAILABLE', message, { cause, retry: 'later' })
    }
  }

  function of(user: string | undefined): ServerMetadata {
    const scopeOf = <S extends MetadataScope>(scope: S): S => (user === undefined ? scope : { user, ...scope })
    const columnsBy = (scope: SchemaScope, table?: string): Promise<ColumnsByTable> =>
      columns.get(table === undefined ? scope : { ...scope, table }, async (unwanted) => {
        const tableIs = table === undefined ? '' : ` AND table_name = ${printText(table)}`
        const sql = `SELECT table_name, column_name, data_type, is_nullable, comment, extra_info FROM ${informationSchema(scope)}.columns WHERE table_schema = ${printText(scope.schema)}${tableIs} ORDER BY table_name, ordinal_position`
        return columnsByTable(await read(scope, sql, columnRow, unwanted))
      })
    return {
      schemas(catalog) {
        const scope = scopeOf({ catalog })
        const sql = `SELECT schema_name FROM ${informationSchema(scope)}.schemata`
        return answered(schemas.get(scope, async (unwanted) => namesOf(await read(scope, sql, nameRow, unwanted))))
      },
      async tables(catalog, schema) {
        const whole = tables.fresh(scopeOf({ catalog }))
        if (schema !== undefined && whole) return whole.filter((one) => one.schema === schema)
        const scope = scopeOf({ catalog, ...(schema !== undefined && { schema }) })
        const where = schema === undefined ? '' : ` WHERE table_schema = ${printText(schema)}`
        const sql = `SELECT table_schema, table_name, table_type FROM ${informationSchema(scope)}.tables${where}`
        return answered(
          tables.get(scope, async (unwanted) => (await read(scope, sql, tableRow, unwanted)).map(tableOf)),
        )
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
    catalogs: (cluster) => lists.last({ cluster: keyOf(cluster) }, listRead(cluster)),
    listed: (cluster) => lists.settled({ cluster: keyOf(cluster) }),
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

/** The number of columns that are converted in one pass of the event loop. */
const A_SLICE = 10_000

async function columnsByTable(rows: readonly z.output<typeof columnRow>[]): Promise<ColumnsByTable> {
  const byTable = new Map<string, ConnectorColumn[]>()
  for (const [at, [table, name, type, nullable, comment, extra]] of rows.entries()) {
    if (at % A_SLICE === A_SLICE - 1) await nextLoopPass()
    const key = table.toLowerCase()
    const columns = byTable.get(key) ?? []
    byTable.set(key, columns)
    columns.push({
      name: name.toLowerCase(),
      type: type.length > MOST_TEXT ? OVERSIZED : type,
      nullable: nullable === 'YES',
      ...(comment && comment.length <= MOST_TEXT && { comment }),
      ...(extra === PARTITION_KEY && { partitionKey: true }),
    })
  }
  return byTable
}

const bytesOf = (...texts: readonly string[]): number => texts.reduce((sum, { length }) => sum + 2 * length, ROW_BYTES)

function bytesOfNames(names: Iterable<string>): number {
  let bytes = 0
  for (const name of names) bytes += bytesOf(name)
  return bytes
}

function bytesOfTables(tables: readonly SchemaTableName[]): number {
  return tables.reduce((sum, { schema, table }) => sum + bytesOf(schema, table), 0)
}

function bytesOfColumns(byTable: ColumnsByTable): number {
  let bytes = 0
  for (const [table, columns] of byTable) {
    bytes += bytesOf(table)
    for (const { name, type, comment = '' } of columns) bytes += bytesOf(name, type, comment)
  }
  return bytes
}
