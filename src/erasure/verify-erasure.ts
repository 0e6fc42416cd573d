import { createReadStream, existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { constants, createGunzip } from 'node:zlib'
import { systemEventData } from '../coordinator/system/decode-event.ts'
import { systemStream } from '../coordinator/system/events.ts'
import { ArchiveDamaged } from '../events/archive/archived-records.ts'
import type { Recorded } from '../events/event-log.ts'
import type { ParquetEngine } from '../readmodels/archive/parquet-engine.ts'
import { isUnfinished } from '../readmodels/archive/query-archive.ts'
import { isQueryId } from '../shared/ids.ts'
import { hasCode } from '../shared/node-error.ts'
import { linesIn } from '../shared/text-lines.ts'
import type { Remainder } from './erasure-store.ts'
import { createPauses } from './pauses.ts'
import { searchLogs, type SearchedLogs } from './search-logs.ts'
import { searchTables, type TableRows } from './search-tables.ts'
import { CODED, PACKED, searchFor, type Subject, type SubjectSearch } from './subject.ts'

/** A folder with archives, searched file by file. */
export interface SearchedFolder {
  readonly folder: string
  /** Reads Parquet files below the folder. */
  readonly engine: ParquetEngine
}

/** Messages that were published, in order. */
export interface SearchedTopic {
  readonly name: string
  /** How long the topic keeps messages, milliseconds; undefined: without a limit. */
  readonly keptMs: () => Promise<number | undefined>
  readonly messages: () => AsyncIterable<{ readonly text: string; readonly timeMs: number }>
}

/** Everything that Quipu writes and can read again. */
export interface VerifyDeps {
  readonly logs: SearchedLogs
  readonly tables: TableRows
  readonly archives: readonly SearchedFolder[]
  /** Files of published lines, such as that of OpenLineage. */
  readonly files: readonly string[]
  readonly topics: readonly SearchedTopic[]
}

/** The result of a search of all locations after an erasure. */
export interface Proof {
  /** How many queries, and how many other events, the erasure removed; 0 without an erasure. */
  readonly queries: number
  readonly records: number
  /** All locations that were searched, also those where nothing was found. */
  readonly locations: readonly Remainder[]
}

/** Searches every location for a subject. Memory does not depend on how much there is. */
export async function verifyErasure(deps: VerifyDeps, subject: Subject, erasureId?: string): Promise<Proof> {
  const search = searchFor(subject)
  const log = await searchLog(deps.logs, search, erasureId)
  // The read models have rows of all events that stay in the log.
  const why = log.locations.some((one) => one.why !== undefined && one.found > 0)
    ? { why: 'rows of those events of the log' }
    : {}
  const tables = await searchTables(deps.tables, search)
  const locations = [...log.locations, ...tables.map((table) => ({ ...why, ...table }))]
  for (const folder of deps.archives) locations.push(await searchFolder(folder, search))
  for (const file of deps.files) locations.push(await searchLines(file, search))
  for (const topic of deps.topics) locations.push(await searchTopic(topic, search))
  return { queries: log.queries, records: log.records, locations }
}

const WHY_CLEAR = 'records of a topic cannot be rewritten: archive their period, then erase again'
const WHY_KEPT = 'the record of acts, rules and archives must stay complete'
const WHY_MENTIONED = 'queries of other users that mention the name: erase them with --mentions'

/** The most records of one type that the report names. */
const NAMED_RECORDS = 3

/** The records that stay although they contain the subject: how many of each type, with the streams and sequences of some. */
class KeptRecords {
  readonly #types = new Map<string, { count: number; readonly named: string[] }>()

  add({ type, stream, sequence }: Pick<Recorded, 'type' | 'stream' | 'sequence'>, search: SubjectSearch): void {
    const known = this.#types.get(type) ?? { count: 0, named: [] }
    this.#types.set(type, known)
    known.count++
    const name = `${stream}/${sequence}`
    // The report is recorded, so it must not contain the subject.
    if (known.named.length < NAMED_RECORDS && !search.isIn(name)) known.named.push(name)
  }

  get count(): number {
    return [...this.#types.values()].reduce((sum, { count }) => sum + count, 0)
  }

  /** Such as ` (1 LogDropped: system/9)`; empty if nothing is kept. */
  get text(): string {
    const types = [...this.#types].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const parts = types.map(([type, { count, named }]) => {
      const more = count > named.length ? ', …' : ''
      return `${count} ${type}${named.length > 0 ? `: ${named.join(', ')}${more}` : ''}`
    })
    return parts.length === 0 ? '' : ` (${parts.join('; ')})`
  }
}

/** Reads all events anew, decrypted, together with those in the archive. */
async function searchLog(logs: SearchedLogs, search: SubjectSearch, erasureId: string | undefined): Promise<Proof> {
  const removed = { queries: 0, records: new Set<number>() }
  const counts = { data: 0, clear: 0, mentions: 0 }
  const kept = new KeptRecords()
  for await (const { events, found, isInNewestLog } of searchLogs(logs, { search, mentions: false })) {
    for (const event of events) countRemoved(event, erasureId, removed)
    const left: Recorded[] = []
    for (const { event, finding } of found) {
      if (finding.kind === 'kept') kept.add(event, search)
      else if (finding.kind === 'mention') counts.mentions++
      else left.push(event)
    }
    const forgettable = await logs.selectForgettable(left, isInNewestLog)
    counts.data += forgettable.length
    counts.clear += left.length - forgettable.length
  }
  return {
    queries: removed.queries,
    records: removed.records.size,
    locations: [
      { location: 'event log', found: counts.data },
      { location: 'event log, unencrypted records', found: counts.clear, why: WHY_CLEAR },
      { location: 'event log, kept records', found: kept.count, why: `${WHY_KEPT}${kept.text}` },
      { location: 'event log, mentions', found: counts.mentions, why: WHY_MENTIONED },
    ],
  }
}

function countRemoved(
  { stream, type, v, data, forgotten }: Recorded,
  erasureId: string | undefined,
  removed: { queries: number; readonly records: Set<number> },
): void {
  if (erasureId === undefined || stream !== systemStream || type !== 'DataForgotten' || forgotten) return
  const fact = systemEventData('DataForgotten', v, data)
  if (fact.erasureId !== erasureId) return
  if (isQueryId(fact.stream)) removed.queries++
  else for (const sequence of fact.sequences) removed.records.add(sequence)
}

/** How long the search of a folder is repeated while another process replaces its files, milliseconds. */
const REPLACED_MS = 60_000
const LOOK_AGAIN_MS = 200

/** Searches all files below a folder, of any name: also copies that were left behind. */
async function searchFolder({ folder, engine }: SearchedFolder, search: SubjectSearch): Promise<Remainder> {
  for (const until = performance.now() + REPLACED_MS; ; await sleep(LOOK_AGAIN_MS)) {
    const found = await foundInFolder({ folder, engine }, search, performance.now() < until)
    if (found !== undefined) return { location: `archive ${folder}`, found }
  }
}

/**
 * @returns undefined if a file disappeared or is not complete, because another process replaces files: the search must
 *   begin again
 * @throws ArchiveDamaged for a file that cannot be read
 */
async function foundInFolder(
  { folder, engine }: SearchedFolder,
  search: SubjectSearch,
  mayRepeat: boolean,
): Promise<number | undefined> {
  let found = 0
  if (!existsSync(folder)) return 0
  let path = folder
  try {
    for await (path of filesBelow(folder)) found += await foundInFile(engine, path, search)
    return found
  } catch (error) {
    if (mayRepeat && (hasCode(error, 'ENOENT') || !existsSync(path) || isUnfinished(path))) return undefined
    throw new ArchiveDamaged(`${path} cannot be searched: ${(error as Error).message}`, { cause: error })
  }
}

async function foundInFile(engine: ParquetEngine, path: string, search: SubjectSearch): Promise<number> {
  if (path.endsWith('.parquet')) return foundInParquet(engine, path, search)
  return linesWith(path, search)
}

/**
 * The number of lines of a file, which may be packed, that contain the subject. One line is in memory at once. A killed
 * process may have written only the beginning of a packed file.
 */
async function linesWith(path: string, search: SubjectSearch): Promise<number> {
  const file = createReadStream(path)
  const unpack = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
  const input: Readable = path.endsWith('.gz') ? file.pipe(unpack) : file
  // `pipe` passes no errors on.
  file.once('error', (error) => input.destroy(error))
  const pause = createPauses()
  let found = 0
  try {
    for await (const line of linesIn(input)) {
      if (search.isIn(line)) found++
      await pause()
    }
    return found
  } finally {
    file.destroy()
  }
}

async function* filesBelow(folder: string): AsyncGenerator<string> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* filesBelow(path)
    else if (entry.isFile()) yield path
  }
}

function nothingIfMissing(error: unknown): [] {
  if (hasCode(error, 'ENOENT')) return []
  throw error
}

/** Reads only rows that may contain the subject. */
async function foundInParquet(engine: ParquetEngine, path: string, search: SubjectSearch): Promise<number> {
  const pause = createPauses()
  let found = 0
  const rows = engine.rows(
    `select text from (select concat_ws(chr(10), *COLUMNS(*)) as text from read_parquet($1))
     where regexp_matches(text, $3) or len(list_filter($2::varchar[], lambda spelling: contains(text, spelling))) > 0`,
    [path, [...search.spellings, PACKED], CODED],
  )
  for await (const part of rows)
    for (const [row] of part) {
      if (search.isIn(String(row))) found++
      await pause()
    }
  return found
}

/** Searches a file of lines, and the older files beside it. */
async function searchLines(path: string, search: SubjectSearch): Promise<Remainder> {
  const folder = join(path, '..')
  const names = (await readdir(folder).catch(nothingIfMissing)).filter(
    (name) => name === basename(path) || name.startsWith(`${basename(path)}.`),
  )
  let found = 0
  for (const name of names) {
    if (!(await stat(join(folder, name))).isFile()) continue
    found += await linesWith(join(folder, name), search)
  }
  return { location: `file ${path}`, found, why: 'published lines stay until their file is deleted' }
}

async function searchTopic(topic: SearchedTopic, search: SubjectSearch): Promise<Remainder> {
  let found = 0
  let last = 0
  for await (const { text, timeMs } of topic.messages()) {
    if (!search.isIn(text)) continue
    found++
    last = Math.max(last, timeMs)
  }
  const keptMs = found === 0 ? undefined : await topic.keptMs()
  return {
    location: `topic ${topic.name}`,
    found,
    ...(keptMs !== undefined && { until: new Date(last + keptMs).toISOString() }),
    why: 'published messages stay until their retention ends',
  }
}
