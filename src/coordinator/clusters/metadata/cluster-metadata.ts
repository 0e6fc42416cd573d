import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { z } from 'zod'
import type { ConnectorColumn } from '../../../connectors/spi/connector.ts'
import { inSlices } from '../../../security/rules/read-in-slices.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { howToRetry, QuipuError } from '../../../shared/quipu-error.ts'
import { printText, printQuoted } from '../../../sql/syntax/print-names.ts'
import { createRecentValues, type MetadataScope, type RecentValues } from './recent-values.ts'

/**
 * The catalogs, schemas, tables and columns of a group of clusters. A value is kept for 60 seconds. While no cluster of
 * the group answers, the last value is used for up to 10 minutes.
 *
 * All functions throw EngineError: the error of the cluster, or NO_NODES_AVAILABLE if no cluster answers and there is
 * no value that may be used.
 */
export interface ClusterMetadata {
  /** All catalogs of the clusters, `system` included. */
  catalogs(): Promise<readonly string[]>
  /** All schemas, `information_schema` included. */
  schemas(catalog: string): Promise<readonly string[]>
  /** Tables and views; empty for an unknown schema. */
  tables(catalog: string, schema: string): Promise<readonly string[]>
  /** The columns of a table or view, in their order; undefined if there is none. One read fetches a whole schema. */
  columns(catalog: string, schema: string, table: string): Promise<readonly ConnectorColumn[] | undefined>
  /** Names of the session properties that the clusters know; those of a catalog begin with its name and a dot. */
  sessionProperties(): Promise<ReadonlySet<string>>
  /**
   * Forgets the values that a delegated statement may have changed. With a schema: its tables and columns. With a
   * catalog alone: also the list of its schemas. With neither: everything.
   */
  drop(changed: MetadataScope): void
}

/** `C` is a cluster. */
export interface ClusterMetadataDeps<C> {
  readonly group: string
  /** A cluster of the group that answers now; undefined while all are away. */
  readonly anyCluster: () => C | undefined
  /**
   * Runs a statement as the user of this gateway.
   * @returns the rows in the protocol's JSON values
   * @throws EngineError for an error that the cluster answers with; an error that may be retried if it does not answer
   */
  readonly runOnCluster: (cluster: C, sql: string) => Promise<readonly (readonly unknown[])[]>
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

export function createClusterMetadata<C>(deps: ClusterMetadataDeps<C>): ClusterMetadata {
  const { group, anyCluster, runOnCluster, now } = deps
  const namesOf = (): RecentValues<readonly string[]> =>
    createRecentValues<readonly string[]>({ weightOf: (names) => names.length, now })
  const catalogs = namesOf()
  const schemas = namesOf()
  const tables = namesOf()
  const properties = createRecentValues<ReadonlySet<string>>({ weightOf: ({ size }) => size, now })
  const columns = createRecentValues<ColumnsByTable>({
    weightOf: (byTable) => [...byTable.values()].reduce((sum, { length }) => sum + length, 0),
    now,
  })

  async function rowsOf<T>(sql: string, row: z.ZodType<T>): Promise<readonly T[]> {
    const cluster = anyCluster()
    if (cluster === undefined) throw new GroupAway('No cluster of the group is active and healthy')
    const rows = await runOnCluster(cluster, sql)
    // A schema may have several 100,000 columns, and each row takes microseconds.
    return inSlices(
      rows,
      () => nextLoopPass(),
      (some) => {
        const read = z.array(row).safeParse(some)
        if (read.success) return read.data
        throw new EngineError('REMOTE_TASK_ERROR', `The group '${group}' gave other rows than Trino does for: ${sql}`)
      },
    )
  }

  const namesBy = async (sql: string): Promise<readonly string[]> => (await rowsOf(sql, nameRow)).map(([name]) => name)

  /** Reports a group that is away as the error of a statement. */
  async function answered<T>(value: Promise<T>): Promise<T> {
    try {
      return await value
    } catch (cause) {
      if (cause instanceof EngineError || howToRetry(cause) === 'never') throw cause
      const message = `No cluster of the group '${group}' answers, so its catalogs are not known: try again later`
      throw new EngineError('NO_NODES_AVAILABLE', message, { cause, retry: 'later' })
    }
  }

  return {
    catalogs: () => answered(catalogs.get({}, () => namesBy('SHOW CATALOGS'))),
    schemas: (catalog) =>
      answered(
        schemas.get({ catalog }, () =>
          namesBy(`SELECT schema_name FROM ${printQuoted(catalog)}.information_schema.schemata`),
        ),
      ),
    tables: (catalog, schema) =>
      answered(
        tables.get({ catalog, schema }, () =>
          namesBy(
            `SELECT table_name FROM ${printQuoted(catalog)}.information_schema.tables WHERE table_schema = ${printText(schema)}`,
          ),
        ),
      ),
    async columns(catalog, schema, table) {
      const sql = `SELECT table_name, column_name, data_type, is_nullable FROM ${printQuoted(catalog)}.information_schema.columns WHERE table_schema = ${printText(schema)} ORDER BY table_name, ordinal_position`
      const byTable = columns.get({ catalog, schema }, async () => columnsByTable(await rowsOf(sql, columnRow)))
      return (await answered(byTable)).get(table)
    },
    // The first column is the name. The others are the values, the type and a description.
    sessionProperties: () => answered(properties.get({}, async () => new Set(await namesBy('SHOW SESSION')))),
    drop(changed) {
      for (const values of [catalogs, schemas, tables, columns, properties]) values.drop(changed)
    },
  }
}

class GroupAway extends QuipuError {
  readonly retry = 'later'
}

type ColumnsByTable = ReadonlyMap<string, readonly ConnectorColumn[]>

const nameRow = z.tuple([z.string()]).rest(z.unknown())
const columnRow = z.tuple([z.string(), z.string(), z.string(), z.enum(['YES', 'NO'])])

function columnsByTable(rows: readonly z.output<typeof columnRow>[]): ColumnsByTable {
  const byTable = new Map<string, ConnectorColumn[]>()
  for (const [table, name, type, nullable] of rows) {
    const columns = byTable.get(table) ?? []
    byTable.set(table, columns)
    columns.push({ name, type, nullable: nullable === 'YES' })
  }
  return byTable
}
