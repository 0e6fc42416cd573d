import type { ScanQuestion } from '../connectors/spi/scan-question.ts'
import type { ColumnId } from '../sql/analyzer/tree.ts'
import type { BoundQuery } from '../sql/front-end.ts'
import type { ReadScan } from '../sql/renderer/render-state.ts'
import type { AccessPath, TableRead, ViewRead } from './planned-statement.ts'

/** A chain of views that may be read several times, and its columns so far. */
interface FoundPath {
  readonly views: readonly string[]
  readonly columns: Set<string>
}

/** A table that may be scanned several times. */
interface FoundTable extends Pick<TableRead, 'catalog' | 'schema' | 'table'> {
  readonly snapshots: Set<string | undefined>
  readonly paths: Map<string, FoundPath>
}

/**
 * Each table once, with all columns that the statement itself reads, and the snapshots of all versions.
 * @param needed the columns that the query computes or reads
 * @param asked those of them that do not serve rules only
 */
export function readTables(
  scans: readonly ReadScan[],
  needed: ReadonlySet<ColumnId>,
  asked: ReadonlySet<ColumnId>,
): readonly TableRead[] {
  const tables = new Map<string, FoundTable>()
  for (const { scan, columns } of scans) {
    const ofRules = scan.columns.filter(({ id }) => needed.has(id) && !asked.has(id)).map(({ name }) => name)
    const shown = columns.filter((column) => !ofRules.includes(column))
    const { catalog, schema, table, snapshot, via = [] } = scan
    const key = JSON.stringify([catalog, schema, table])
    const known = tables.get(key) ?? {
      catalog,
      schema,
      table,
      snapshots: new Set(),
      paths: new Map<string, FoundPath>(),
    }
    known.snapshots.add(snapshot)
    const { columns: found } = pathIn(known.paths, via)
    for (const column of scan.question?.groups ? questionedColumns(scan.question) : shown) found.add(column)
    tables.set(key, known)
  }
  return [...tables.values()].map(({ snapshots, paths, ...name }) => {
    const all = [...paths.values()]
    const columns = [...new Set(all.flatMap((path) => [...path.columns]))]
    const isDirect = all.every(({ views }) => views.length === 0)
    return {
      ...name,
      columns,
      ...(!isDirect && { paths: all.map(asPath) }),
      ...(!snapshots.has(undefined) && { snapshot: [...snapshots].join(', ') }),
    }
  })
}

/** Each view once for each chain of views that leads to it, with the columns that the statement itself reads. */
export function readViews(
  { views, ofRules }: Pick<BoundQuery, 'views' | 'ofRules'>,
  needed: ReadonlySet<ColumnId>,
  asked: ReadonlySet<ColumnId>,
): readonly ViewRead[] {
  const found = new Map<string, { readonly read: Omit<ViewRead, 'columns'>; readonly columns: Set<string> }>()
  for (const { catalog, schema, table: view, via, columns } of views) {
    if (columns.some(({ id }) => ofRules.has(id))) continue
    const key = JSON.stringify([catalog, schema, view, via])
    const known = found.get(key) ?? { read: { catalog, schema, view, via }, columns: new Set<string>() }
    for (const { id, name } of columns) if (needed.has(id) && asked.has(id)) known.columns.add(name)
    found.set(key, known)
  }
  return [...found.values()].map(({ read, columns }) => ({ ...read, columns: [...columns] }))
}

function pathIn(paths: Map<string, FoundPath>, views: readonly string[]): FoundPath {
  const key = JSON.stringify(views)
  const path = paths.get(key) ?? { views, columns: new Set<string>() }
  paths.set(key, path)
  return path
}

function asPath({ views, columns }: FoundPath): AccessPath {
  return { views, columns: [...columns] }
}

function questionedColumns({ terms, groups }: ScanQuestion): string[] {
  return [...terms, ...(groups?.keys ?? []), ...(groups?.measures ?? [])].flatMap(({ column }) => column ?? [])
}
