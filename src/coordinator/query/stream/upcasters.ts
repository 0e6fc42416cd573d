import { z } from 'zod'
import { upcast, type Upcasters } from '../../../events/upcast.ts'
import { queryEventVersions, type QueryEventType } from './events.ts'

/** Upcasters by event type and by the version that each takes. */
export const queryEventUpcasters: Readonly<Partial<Record<QueryEventType, Upcasters>>> = {
  // At first no rules set properties; then no act ran statements again.
  QueryCreated: { 1: (data) => data, 2: (data) => data },
  // At first pages had no place: stream and token find them, as today where no place is named. Later they had no
  // digests.
  ResultPagesPublished: { 1: (data) => data, 2: (data) => data },
  // At that time results had no digests.
  QueryFinished: { 1: (data) => data },
  // Earlier versions lacked, in this order: statements that change something; withheld fragments; properties that the
  // statement set; files of the analysis; some names of errors, and the mark on scans that only the rules read; routes
  // to clusters; changes of rows, columns, names and comments, and routes that stay here or reject; expired versions.
  // Nothing must be added.
  QueryPlanned: {
    1: (data) => data,
    2: (data) => data,
    3: (data) => data,
    4: (data) => data,
    5: (data) => data,
    6: (data) => data,
    7: (data) => data,
    8: (data) => data,
  },
  // At that time no cluster ran tasks.
  TaskCreated: { 1: (data) => data },
  QueryProgressed: { 1: (data) => data },
  // Later versions added changes of rows, columns, names and comments, then expired versions.
  WritePrepared: { 1: (data) => preparedOf(firstPrepared.parse(data)), 2: (data) => data, 3: (data) => data },
  WriteCommitted: { 1: (data) => committedOf(firstCommitted.parse(data)) },
  // At that time unreadable files had no errors of their own.
  TaskFailed: { 1: (data) => data, 2: (data) => data },
  // At first only the stream `system` named the user that ended a query; then no statement could end one; then fewer
  // errors had names, and no cluster ran statements; then no act could end one.
  QueryFailed: { 1: (data) => data, 2: (data) => data, 3: (data) => data, 4: (data) => data, 5: (data) => data },
}

const firstPrepared = z.object({
  catalog: z.string(),
  schema: z.string(),
  table: z.string().optional(),
  operation: z.string(),
  baseVersion: z.string().optional(),
  files: z.array(z.object({ path: z.string(), rows: z.number(), bytes: z.number(), sha256: z.string().optional() })),
})

function preparedOf({ baseVersion, files, ...named }: z.infer<typeof firstPrepared>): unknown {
  const { catalog, schema, table = '' } = named
  return {
    ...named,
    rows: files.reduce((sum, file) => sum + file.rows, 0),
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    prepared: {
      catalog,
      queryId: '',
      change: { kind: 'insert', schema, table },
      baseVersion: Number(baseVersion ?? 0),
      columns: [],
      files: files.map(({ path, rows, bytes, sha256 = '' }) => ({ path, rows, bytes, footer: sha256 })),
    },
  }
}

const firstCommitted = z.object({ version: z.string().optional(), outcome: z.string() })

function committedOf({ version, outcome }: z.infer<typeof firstCommitted>): unknown {
  return { outcome, ...(version !== undefined && { version: Number(version) }) }
}

/**
 * Brings stored data to today's version.
 * @param version with which the data was stored; data of a later program stays as it is
 */
export function upcastQueryEvent(
  type: QueryEventType,
  version: number,
  data: unknown,
  upcasters = queryEventUpcasters,
): unknown {
  return upcast({ type, version, current: queryEventVersions[type] }, data, upcasters[type])
}
