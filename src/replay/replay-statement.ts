import { borderQuestions, chanceIn } from './chances.ts'
import { compareResults, type Comparison, type Example } from './compare-results.ts'
import type { RecordedStatement } from './recorded-statement.ts'
import { queryIn, type CatalogMap } from './replayed-text.ts'
import type { DigestComparison } from './digest-comparison.ts'
import type { RecordedDigest } from '../coordinator/query/events.ts'
import { speedOf, type Speed } from './timing.ts'
import type { SentColumn, ScratchResult, ScratchResults } from './scratch-results.ts'
import type { Chance, Difference, ReplayError, ReplayVerdict } from './verdict.ts'

/** One answer of a server: part of a result, or why there is none. */
export interface ReplayAnswer {
  readonly queryId: string
  /** As it was sent. */
  readonly text: string
  readonly columns: readonly SentColumn[] | undefined
  readonly hasRows: boolean
  readonly error: ReplayError | undefined
}

/** A server that statements of the record are run on. */
export interface ReplayServer {
  /**
   * Runs a text in the session of a statement; leaving the loop early cancels it.
   * @throws Error when the server cannot be reached
   */
  run(sql: string, statement: RecordedStatement, signal: AbortSignal): AsyncIterable<ReplayAnswer>
  /** What named the rows that a query of it read, by table, as far as it tells. */
  snapshots(queryId: string): Promise<ReadonlyMap<string, string>>
  /** Of a query's result; undefined where it has none, or does not tell it. */
  digest(queryId: string): Promise<RecordedDigest | undefined>
}

export interface ReplaySides {
  /** What is proven good: the version that the record is of. */
  readonly here: ReplayServer
  readonly there: ReplayServer
  readonly scratch: ScratchResults
  readonly signal: AbortSignal
  /** Absent: what is proven good is always run again. */
  readonly digests?: DigestComparison | undefined
  /** Names of catalogs there. */
  readonly catalogs: CatalogMap
  /** How often each side is timed where the results are the same; 0: not at all. */
  readonly repeat: number
}

export interface Replayed {
  readonly verdict: ReplayVerdict
  /** Milliseconds of the wall clock from the POST to the last page; absent where it failed. */
  readonly hereMs?: number
  readonly thereMs?: number
  readonly rows?: number
  readonly byDigest?: true
  readonly speed?: Speed
  readonly examples: readonly Example[]
}

/** Runs a statement on both sides and says what came of it. @throws Error when a server cannot be reached */
export async function replayStatement(statement: RecordedStatement, sides: ReplaySides): Promise<Replayed> {
  const { scratch } = sides
  const known = await sides.digests?.replay(statement, sides.there, sides.signal)
  if (known) return known
  const [here, there] = await both(run(sides.here, statement, sides), run(sides.there, statement, sides))
  try {
    if (here.kind === 'failed' || there.kind === 'failed')
      return { verdict: verdictOfFailures(here, there), ...figures(here, there), examples: [] }
    const comparison = await compareResults(scratch, here.result, there.result)
    const shown = { ...figures(here, there), rows: there.result.rows }
    if (comparison.kind === 'same') {
      const verdict = comparison.order || !statement.ordered ? 'SAME' : 'SAME_OTHER_ORDER'
      const speed = sides.repeat > 0 ? await timed(statement, sides) : undefined
      return { verdict: { verdict }, ...shown, ...(speed && { speed }), examples: [] }
    }
    const verdict = await verdictOfDifference(statement, comparison.difference, here, sides)
    return { verdict, ...shown, examples: comparison.examples }
  } finally {
    await Promise.all([here.drop(), there.drop()])
  }
}

type Ran = { readonly drop: () => Promise<void> } & (
  | { readonly kind: 'ended'; readonly queryId: string; readonly result: ScratchResult; readonly ms: number }
  | { readonly kind: 'failed'; readonly error: ReplayError }
)

type Ended = Extract<Ran, { kind: 'ended' }>

/** Tables of the baseline whose rows are others than they were at its first run. */
interface Moved {
  readonly kind: 'moved'
  readonly tables: readonly string[]
}

async function movedBetween(first: Ended, again: Ended, { here }: ReplaySides): Promise<Moved | undefined> {
  const [before, after] = await Promise.all([here.snapshots(first.queryId), here.snapshots(again.queryId)])
  const tables = [...before].flatMap(([table, snapshot]) => (after.get(table) === snapshot ? [] : [table]))
  return tables.length === 0 ? undefined : { kind: 'moved', tables }
}

/** Neither side is left running, and neither table left lying, where the other cannot be reached. */
async function both(here: Promise<Ran>, there: Promise<Ran>): Promise<readonly [Ran, Ran]> {
  const [first, second] = await Promise.allSettled([here, there])
  if (first.status === 'fulfilled' && second.status === 'fulfilled') return [first.value, second.value]
  for (const one of [first, second]) if (one.status === 'fulfilled') await one.value.drop()
  throw (first.status === 'rejected' ? first : (second as PromiseRejectedResult)).reason
}

/** Of all its answers: what lies on this machine's disk has an end, whatever a server says. */
const LONGEST_RESULT = 16 * 1024 ** 3
const TOO_LONG: ReplayError = { name: 'RESULT_TOO_LARGE', message: 'Its answers have more than 16 GiB' }

/** @param sql another text than the statement's, in its session */
async function run(
  server: ReplayServer,
  statement: RecordedStatement,
  { scratch, signal }: ReplaySides,
  sql = statement.sql,
): Promise<Ran> {
  const reader = scratch.begin()
  const drop = () => reader.drop()
  const startedAt = performance.now()
  let columns: readonly SentColumn[] = []
  let queryId = ''
  let length = 0
  try {
    for await (const answer of server.run(sql, statement, signal)) {
      if (answer.error) return { kind: 'failed', error: answer.error, drop }
      queryId = answer.queryId
      if (columns.length === 0) columns = answer.columns ?? columns
      length += answer.text.length
      if (length > LONGEST_RESULT) return { kind: 'failed', error: TOO_LONG, drop }
      if (answer.hasRows) await reader.add(answer.text, columns)
    }
    const ms = performance.now() - startedAt
    return { kind: 'ended', queryId, result: await reader.end(columns), ms, drop }
  } catch (error) {
    await drop()
    throw error
  }
}

/** Each side in turn, alone, its rows read and let go; undefined for noise, and where a run fails. */
async function timed(statement: RecordedStatement, sides: ReplaySides): Promise<Speed | undefined> {
  const times = { here: [] as number[], there: [] as number[] }
  for (let turn = 0; turn < sides.repeat; turn++)
    for (const side of ['here', 'there'] as const) {
      const startedAt = performance.now()
      for await (const { error } of sides[side].run(statement.sql, statement, sides.signal)) if (error) return undefined
      times[side].push(performance.now() - startedAt)
    }
  return speedOf(times.here, times.there)
}

function figures(here: Ran, there: Ran): Pick<Replayed, 'hereMs' | 'thereMs'> {
  return {
    ...(here.kind === 'ended' && { hereMs: here.ms }),
    ...(there.kind === 'ended' && { thereMs: there.ms }),
  }
}

function verdictOfFailures(here: Ran, there: Ran): ReplayVerdict {
  if (here.kind === 'ended')
    return { verdict: 'FAILED_THERE', there: (there as Extract<Ran, { kind: 'failed' }>).error }
  if (there.kind === 'ended') return { verdict: 'FAILED_HERE', here: here.error }
  return { verdict: 'FAILED_BOTH', here: here.error, there: there.error }
}

async function verdictOfDifference(
  statement: RecordedStatement,
  difference: Difference,
  first: Ended,
  sides: ReplaySides,
): Promise<ReplayVerdict> {
  if (difference.kind === 'columns') return { verdict: 'DIFFERENT', difference }
  const chance = await chanceOf(statement, first, sides)
  if (chance?.kind === 'moved') return { verdict: 'DATA_MOVED', tables: [...chance.tables], difference }
  return chance ? { verdict: 'NON_DETERMINISTIC', chance, difference } : { verdict: 'DIFFERENT', difference }
}

/** What is cheap is asked first: the text, then the baseline once more, then how sharp the border of each LIMIT is. */
async function chanceOf(
  statement: RecordedStatement,
  first: Ended,
  sides: ReplaySides,
): Promise<Chance | Moved | undefined> {
  const query = queryIn(statement)
  const written = query && chanceIn(query)
  if (written) return written
  const again = await run(sides.here, statement, sides)
  try {
    if (again.kind === 'failed') return { kind: 'repeated' }
    const repeated: Comparison = await compareResults(sides.scratch, first.result, again.result)
    if (repeated.kind === 'different') return (await movedBetween(first, again, sides)) ?? { kind: 'repeated' }
  } finally {
    await again.drop()
  }
  for (const { kind, sql, kept } of query ? borderQuestions(query) : [])
    if ((await countOn(sql, statement, sides)) > kept) return { kind }
  return undefined
}

/** 0 where the question itself fails: what it was made of may stand in a query that it refers to. */
async function countOn(sql: string, statement: RecordedStatement, sides: ReplaySides): Promise<bigint> {
  const asked = await run(sides.here, statement, sides, sql)
  try {
    if (asked.kind === 'failed') return 0n
    return await sides.scratch.countIn(asked.result)
  } finally {
    await asked.drop()
  }
}
