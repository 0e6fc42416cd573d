import type { Catalogs } from '../../../connectors/spi/catalogs.ts'
import { withDeadline } from '../../../shared/deadline.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { shownName, type RightsOf } from '../../../sql/access-control.ts'
import type { PlannedStatement } from '../../../planner/planned-statement.ts'
import type { MetadataPort } from '../../../sql/front-end.ts'
import { createMetadataPort } from '../../dispatch/catalog-metadata.ts'
import { resultLineage, type PlanFacts } from '../stream/planned-data.ts'
import type { Analysis } from './analysis.ts'
import { tablesRead, viewsRead } from './query-statement.ts'
import { watchedRights } from './remote-rights.ts'

/** The findings of the analysis of a statement that a cluster runs. */
export type AnalysedForCluster = Pick<PlanFacts, 'columns' | 'tables' | 'views' | 'lineage'>

export interface ClusterAnalysis {
  readonly analysis: Pick<Analysis, 'analyzeElsewhere'>
  /** The catalogs of this server and of the cluster. */
  readonly catalogs: Catalogs
  readonly user: string
  /** The rights that are checked; undefined where they are not restricted, or the cluster decides about them. */
  readonly rightsOf: RightsOf | undefined
}

/**
 * How long the analysis waits for the columns of tables at clusters, milliseconds. Without the analysis a statement
 * needs the right to all columns of its tables, so under access rules it waits longer.
 */
const WAIT_MS = { rights: 10_000, lineage: 2_000 } as const

/**
 * Analyses a query over the metadata of the cluster that will run it: names, types, the rights on each column, lineage.
 * @returns undefined if this server cannot analyse it: columns are not known, or a function, a type or some syntax is
 * known to the cluster alone. The error may be that of the statement; then the cluster reports it.
 * @throws EngineError PERMISSION_DENIED; NOT_SUPPORTED for a row filter or a mask
 */
export async function analyseForCluster({
  analysis,
  catalogs,
  user,
  rightsOf,
}: ClusterAnalysis): Promise<AnalysedForCluster | undefined> {
  const seen = new SeenTables()
  const waitMs = rightsOf ? WAIT_MS.rights : WAIT_MS.lineage
  const metadata = seen.noting(waitingFor(createMetadataPort(catalogs, user), waitMs))
  const planned = await analysis
    .analyzeElsewhere(metadata, rightsOf && watchedRights(rightsOf, (name, rights) => seen.rights(name, rights)))
    .catch((error: unknown) => {
      if (error instanceof EngineError && error.errorName !== 'PERMISSION_DENIED') return undefined
      throw error
    })
  seen.refusePolicies()
  // A column that may not be read, and is not known here, could be part of a `*` at the cluster.
  return planned && !seen.hasUnknownRestriction() ? factsOf(planned) : undefined
}

/** The most characters of the findings in an event: a statement must not fail because they are too large. */
const MOST_CHARACTERS = 1024 * 1024

function factsOf(planned: PlannedStatement): AnalysedForCluster | undefined {
  if (planned.kind !== 'query' && planned.kind !== 'explain') return undefined
  const statement = planned.kind === 'explain' ? planned.statement : planned
  if (statement.kind !== 'query') return undefined
  const { columns } = planned
  const [tables, views] = [tablesRead(statement.query), viewsRead(statement.query)]
  const lineage = planned.kind === 'query' ? resultLineage(planned.lineage, columns) : undefined
  const withoutSources = columns.map((column) => ({ ...column, lineage: [] }))
  const forms: readonly AnalysedForCluster[] = [
    { columns, tables, views, lineage },
    { columns: withoutSources, tables, views },
  ]
  return forms.find((form) => JSON.stringify(form).length <= MOST_CHARACTERS) ?? { columns: [], tables: [] }
}

/** Gives up waiting for a catalog once the time for all its answers is over. */
function waitingFor(port: MetadataPort, waitMs: number): MetadataPort {
  const end = performance.now() + waitMs
  const late = (): Error => new EngineError('NO_NODES_AVAILABLE', `A catalog gave no answer within ${waitMs} ms`)
  const within = <T>(asked: Promise<T>): Promise<T> => withDeadline(asked, end - performance.now(), late)
  return {
    ...port,
    schemas: (catalog) => within(port.schemas(catalog)),
    tables: (...asked) => within(port.tables(...asked)),
    table: (...name) => within(port.table(...name)),
    // Statistics of tables serve plans, and this server makes none.
    statistics: async () => ({}),
  }
}

type Name = Parameters<Parameters<typeof watchedRights>[1]>[0]
type Rights = Parameters<Parameters<typeof watchedRights>[1]>[1]

/** The tables that an analysis looked at, with their columns and the rights on them. */
class SeenTables {
  readonly #columns = new Map<string, ReadonlySet<string>>()
  readonly #restricted = new Map<string, ReadonlySet<string>>()
  #withPolicy: string | undefined

  noting(port: MetadataPort): MetadataPort {
    return {
      ...port,
      table: async (catalog, schema, table, at) => {
        const found = await port.table(catalog, schema, table, at)
        if (found) this.#columns.set(keyOf({ catalog, schema, table }), new Set(found.columns.map(({ name }) => name)))
        return found
      },
    }
  }

  rights(name: Name, { restricted, filter, masks }: Rights): void {
    if (filter !== undefined || masks.size > 0) this.#withPolicy ??= shownName(name)
    if (restricted.size > 0) this.#restricted.set(keyOf(name), restricted)
  }

  refusePolicies(): void {
    if (this.#withPolicy !== undefined) throw sentWithPolicy(this.#withPolicy)
  }

  hasUnknownRestriction(): boolean {
    return [...this.#restricted].some(([key, names]) => [...names].some((name) => !this.#columns.get(key)?.has(name)))
  }
}

function keyOf({ catalog, schema, table }: Name): string {
  return JSON.stringify([catalog, schema, table])
}

/** The error for a table whose rows or values depend on the user by the rules of this server. */
export function sentWithPolicy(table: string): EngineError {
  return new EngineError(
    'NOT_SUPPORTED',
    `Under access rules, table ${table} with a row filter or a column mask is not sent to a cluster`,
  )
}
