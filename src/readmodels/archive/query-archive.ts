import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import pg from 'pg'
import { renameDurably, syncNames } from '../../events/archive/durable-files.ts'
import { READ_MODEL_SCHEMA } from '../../events/postgres/migrate.ts'
import type { QueryRows } from '../../events/projection.ts'
import { systemStream } from '../../coordinator/system/events.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import { READ_MODELS } from '../projection.ts'
import { archivedTables } from './archived-tables.ts'
import type { ParquetEngine } from './parquet-engine.ts'
import { fileOf, LOCK_PERIODS, readArchivedQueries, type PeriodFile, type QueriesPeriod } from './query-periods.ts'
import {
  CONTENT,
  contentOf,
  contentOfFile,
  copyRows,
  copyWithout,
  sealFile,
  whereOf,
  type Content,
} from './write-files.ts'

/** The rules that decide which queries leave the read models. */
export interface QueryArchivePolicy {
  /** Queries that ended before this leave, ISO UTC. */
  readonly before: string | undefined
  /** Queries beyond this number of most recently ended ones leave. */
  readonly keepQueries: number | undefined
  /** Only queries that ended before this leave: while a result is still read, more events may follow. */
  readonly settledBefore?: string
  /** Only queries without events since then leave: a log without an index finds their streams by these rows. */
  readonly writtenBefore?: string
  /**
   * A period is made when it has at least so many queries, or when its first query ended so long before those that
   * stay.
   */
  readonly leastQueries: number
  readonly leastMs: number
}

export interface QueryArchiveDeps {
  readonly database: pg.ClientConfig
  readonly engine: ParquetEngine
  /** Folder for this log's archive only. */
  readonly folder: string
  /** Called before each period. */
  readonly isStopped?: () => boolean
  /** Whether the disk has room for that many bytes. */
  readonly hasRoom?: (bytes: number) => Promise<boolean>
}

/**
 * Limits of a period: its rows must leave in one transaction of some seconds, and a file's rows must fit into memory.
 */
export const PERIOD_QUERIES = 20_000
const PERIOD_BYTES = 192 << 20

/** Files and read models differ, or rows changed while they were copied: nothing was deleted. */
class QueriesChanged extends QuipuError {
  readonly retry = 'anew'
}

/** The archive's folder is missing although it has periods: a disk is not mounted. */
class FolderAway extends QuipuError {
  readonly retry = 'later'
}

/** The disk has no room: nothing was copied. */
class NoRoom extends QuipuError {
  readonly retry = 'later'
}

const COPY = '.copy-'

/** Whether a file belongs to a period that a process writes now, or did not finish. */
export function isUnfinished(path: string): boolean {
  return basename(dirname(path)).startsWith(COPY)
}

/**
 * Readers search the `system` events after a stored sequence for forgotten queries. The sequence is moved on when more
 * events than this follow it.
 */
const LOOKED_THROUGH = 1000
/** Lock for the process that writes the archive's files. */
const TAKE_LOCK = `select pg_try_advisory_lock(hashtext('quipu query archive')) as held`

/**
 * Moves the rows of queries that ended long ago from Postgres to Parquet files, one period after the other, and removes
 * forgotten data from existing files. Each period is copied, read back and compared. One transaction then deletes its
 * rows and makes the files count: after an interruption at any point, the rows are in one of the two.
 * @returns the periods made now; none when another process holds the lock
 * @throws QueriesChanged | errors of Postgres, of the disk and of DuckDB
 */
export async function archiveQueries(
  deps: QueryArchiveDeps,
  policy: QueryArchivePolicy | undefined,
): Promise<readonly QueriesPeriod[]> {
  const client = new pg.Client({
    ...deps.database,
    application_name: 'quipu query archive',
    options: `${deps.database.options ?? ''} -c search_path=${READ_MODEL_SCHEMA},public -c timezone=UTC`.trim(),
  })
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query<{ held: boolean }>(TAKE_LOCK)
    if (!rows[0]?.held) return []
    return await new Archiving(deps, client).run(policy)
  } finally {
    await client.end().catch(() => {})
  }
}

interface Chosen {
  readonly ids: readonly string[]
  readonly since: string
  readonly created: readonly [string, string]
  readonly ended: readonly [string, string]
  readonly users: readonly string[]
}

class Archiving {
  readonly #deps: QueryArchiveDeps
  readonly #client: pg.Client
  readonly #query: QueryRows

  constructor(deps: QueryArchiveDeps, client: pg.Client) {
    this.#deps = deps
    this.#client = client
    this.#query = async (text, values) => (await client.query<Record<string, unknown>>(text, [...values])).rows
  }

  async run(policy: QueryArchivePolicy | undefined): Promise<readonly QueriesPeriod[]> {
    const { folder } = this.#deps
    const { periods } = await readArchivedQueries(this.#query)
    const isThere = existsSync(folder)
    if (!isThere && periods.length > 0)
      throw new FolderAway(`Queries are archived at ${folder}, but this folder is missing`)
    if (!isThere && !policy) return []
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await this.#removeUnknown(periods)
    await this.#forget()
    const made: QueriesPeriod[] = []
    while (policy && this.#deps.isStopped?.() !== true) {
      // For a while the folder has the rows as text lines, beside the files.
      if ((await this.#deps.hasRoom?.(2 * PERIOD_BYTES)) === false)
        throw new NoRoom('The disk has no space for a period of queries')
      const period = await this.#archive(policy)
      if (!period) break
      made.push(period)
    }
    return made
  }

  /**
   * Deletes unfinished copies, and periods that a rebuild made superfluous because the read models have their rows
   * again.
   */
  async #removeUnknown(periods: readonly QueriesPeriod[]): Promise<void> {
    const { folder } = this.#deps
    const known = new Set(periods.map((period) => period.folder))
    for (const name of await readdir(folder))
      if (!known.has(name)) await rm(join(folder, name), { recursive: true, force: true })
  }

  async #archive(policy: QueryArchivePolicy): Promise<QueriesPeriod | undefined> {
    const copy = await mkdtemp(join(this.#deps.folder, COPY))
    try {
      const copied = await this.#copy(policy, copy)
      if (!copied) return undefined
      return await this.#publish(copied.chosen, copied.files, copy)
    } finally {
      await rm(copy, { recursive: true, force: true })
    }
  }

  /** Copies all tables as of one moment. */
  async #copy(
    policy: QueryArchivePolicy,
    folder: string,
  ): Promise<{ readonly chosen: Chosen; readonly files: Files } | undefined> {
    await this.#query('begin isolation level repeatable read read only', [])
    try {
      const chosen = await this.#choose(policy)
      if (!chosen) return undefined
      const files = new Map<string, PeriodFile>()
      for (const table of archivedTables) {
        const [row] = await this.#query(`select ${CONTENT} from ${table.name} t where ${whereOf(table)}`, [
          chosen.ids,
          chosen.since,
        ])
        const content = contentOf(row)
        await copyRows({ query: this.#query, engine: this.#deps.engine, folder }, table, chosen)
        const sealed = await sealFile(join(folder, fileOf(table.name)))
        mustAgree(table.name, content, await contentOfFile(this.#query, this.#deps.engine, folder, table))
        files.set(table.name, { ...content, ...sealed })
      }
      await syncNames(folder)
      return { chosen, files }
    } finally {
      await this.#client.query('rollback')
    }
  }

  /** Chooses the queries that ended first among those that may leave. None of their events may wait for a repair. */
  async #choose(policy: QueryArchivePolicy): Promise<Chosen | undefined> {
    const before = await this.#border(policy)
    if (before === undefined) return undefined
    const { writtenBefore = null } = policy
    const rows = await this.#query(
      `select q.query_id, q.user_name, q.created_at, q.ended_at, (
         select sum(octet_length(e.data)) from query_events e where e.stream = q.query_id and e."time" >= q.created_at) as bytes
       from queries q
       where q.ended_at < $1::timestamptz and not q.incomplete
         and not exists (select from dead_letters d where d.stream = q.query_id and d.resolved_at is null)
         and ($2::timestamptz is null or q.ended_at < $2 and not exists (
           select from query_events e where e.stream = q.query_id and e."time" >= $2))
       order by q.ended_at limit ${PERIOD_QUERIES}`,
      [before, writtenBefore],
    )
    let bytes = 0
    const size = rows.findIndex((row) => (bytes += Number(row['bytes'])) > PERIOD_BYTES)
    const taken = size <= 0 ? (size === 0 ? rows.slice(0, 1) : rows) : rows.slice(0, size)
    const first = taken[0]
    if (!first) return undefined
    const isWorth =
      size >= 0 ||
      taken.length >= Math.min(policy.leastQueries, PERIOD_QUERIES) ||
      Date.parse(before) - (first['ended_at'] as Date).getTime() >= policy.leastMs
    if (!isWorth) return undefined
    const created = rangeOf(taken.map((row) => row['created_at'] as Date))
    return {
      ids: taken.map((row) => String(row['query_id'])),
      since: created[0],
      created,
      ended: rangeOf(taken.map((row) => row['ended_at'] as Date)),
      users: [...new Set(taken.map((row) => String(row['user_name'])))],
    }
  }

  /** The time before which queries must have ended to leave. */
  async #border({ before, keepQueries, settledBefore }: QueryArchivePolicy): Promise<string | undefined> {
    const settled = (border: string | undefined): string | undefined =>
      border !== undefined && settledBefore !== undefined && settledBefore < border ? settledBefore : border
    if (keepQueries === undefined) return settled(before)
    const [row] = await this.#query(
      'select ended_at from queries where ended_at is not null order by ended_at desc offset $1 limit 1',
      [Math.max(0, keepQueries - 1)],
    )
    const last = row && (row['ended_at'] as Date).toISOString()
    return settled(last === undefined || (before !== undefined && before > last) ? before : last)
  }

  /**
   * Renames the folder. Then one transaction makes the files count and deletes the rows, if those still equal the copy.
   */
  async #publish(chosen: Chosen, files: Files, copy: string): Promise<QueriesPeriod> {
    const folder = basename(copy).slice(COPY.length)
    await renameDurably(copy, join(this.#deps.folder, folder))
    return this.#inTransaction(async () => {
      await this.#query(LOCK_PERIODS, [])
      for (const table of archivedTables) {
        const [row] = await this.#query(
          `with gone as (delete from ${table.name} t where ${whereOf(table)} returning hashtextextended(t::text, 0)::numeric as hash)
           select count(*)::text as rows, coalesce(sum(hash), 0)::text as sum from gone`,
          [chosen.ids, chosen.since],
        )
        mustAgree(table.name, files.get(table.name)!, contentOf(row))
      }
      // Makes the projection drop its cached folds: a late event would turn them into rows again.
      await this.#query('update checkpoints set revision = revision + 1 where name = $1', [READ_MODELS.name])
      const ids = [...chosen.ids].sort(byCodeUnits)
      await this.#query(
        `insert into quipu_log.query_periods (folder, queries, created_from, created_to, ended_from, ended_to,
           first_id, last_id, tables, users) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
        [
          folder,
          ids.length,
          ...chosen.created,
          ...chosen.ended,
          ids[0],
          ids.at(-1),
          JSON.stringify(Object.fromEntries(files)),
          JSON.stringify(chosen.users),
        ],
      )
      const { periods } = await readArchivedQueries(this.#query)
      return periods.find((period) => period.folder === folder)!
    })
  }

  /** Rewrites the periods with data that was forgotten since they were made. */
  async #forget(): Promise<void> {
    await this.#query('begin isolation level repeatable read read only', [])
    const archived = await readArchivedQueries(this.#query)
    const [last] = await this.#query(
      `select max(sequence)::text as sequence, max(sequence) - (select sequence from quipu_log.queries_forgotten) > ${LOOKED_THROUGH} as many
       from audit_log where stream = '${systemStream}'`,
      [],
    )
    await this.#client.query('rollback')
    if (archived.forgotten.length === 0 && last?.['many'] !== true) return
    const rewritten: ({ readonly old: QueriesPeriod } & Rewritten)[] = []
    for (const old of archived.periods) {
      const ids = archived.forgotten.filter((id) => old.first_id <= id && id <= old.last_id)
      if (ids.length > 0) rewritten.push({ old, ...(await this.#rewrite(old, ids)) })
    }
    await this.#inTransaction(async () => {
      await this.#query(LOCK_PERIODS, [])
      for (const { old, folder, files, users } of rewritten)
        await this.#query(
          'update quipu_log.query_periods set folder = $2, tables = $3, queries = $4, users = $5 where number = $1',
          [
            old.number,
            folder,
            JSON.stringify(Object.fromEntries(files)),
            files.get('queries')!.rows,
            JSON.stringify(users),
          ],
        )
      await this.#query('update quipu_log.queries_forgotten set sequence = greatest(sequence, $1)', [last!['sequence']])
    })
    for (const { old } of rewritten) await rm(join(this.#deps.folder, old.folder), { recursive: true, force: true })
  }

  async #rewrite(old: QueriesPeriod, ids: readonly string[]): Promise<Rewritten> {
    const { folder, engine } = this.#deps
    const copy = await mkdtemp(join(folder, COPY))
    const files = new Map<string, PeriodFile>()
    for (const table of archivedTables) {
      await copyWithout(engine, table.name, { from: join(folder, old.folder), to: copy }, ids)
      const sealed = await sealFile(join(copy, fileOf(table.name)))
      files.set(table.name, { ...(await contentOfFile(this.#query, engine, copy, table)), ...sealed })
    }
    await syncNames(copy)
    const name = basename(copy).slice(COPY.length)
    await renameDurably(copy, join(folder, name))
    const users: string[] = []
    const named = engine.rows('select distinct user_name from read_parquet($1)', [
      join(folder, name, fileOf('queries')),
    ])
    for await (const rows of named) users.push(...rows.map(([user]) => String(user)))
    return { folder: name, files, users }
  }

  async #inTransaction<T>(work: () => Promise<T>): Promise<T> {
    await this.#client.query('begin')
    try {
      const done = await work()
      await this.#client.query('commit')
      return done
    } catch (error) {
      await this.#client.query('rollback').catch(() => {})
      throw error
    }
  }
}

interface Rewritten {
  readonly folder: string
  readonly files: Files
  readonly users: readonly string[]
}

type Files = ReadonlyMap<string, PeriodFile>

function mustAgree(table: string, expected: Content, found: Content): void {
  if (expected.rows !== found.rows || expected.sum !== found.sum)
    throw new QueriesChanged(`Archiving ${table}: ${expected.rows} rows were copied, but the table has other rows now`)
}

function rangeOf(times: readonly Date[]): readonly [string, string] {
  const millis = times.map((time) => time.getTime())
  const [first, last] = millis.reduce(([a, b], one) => [Math.min(a, one), Math.max(b, one)] as const, [
    Infinity,
    -Infinity,
  ] as const)
  return [new Date(first).toISOString(), new Date(last + 1).toISOString()]
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
