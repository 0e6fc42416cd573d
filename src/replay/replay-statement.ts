import type { Replayed } from './replayed.ts'
import type { ReplayServer } from './replay-server.ts'
import { borderQuestions, chanceIn, hasUnorderedLimit } from './chances.ts'
import { compareResults, type Comparison } from './compare-results.ts'
import type { RecordedStatement } from './recorded-statement.ts'
import { queryIn, type CatalogMap } from './replayed-text.ts'
import { runThere, type DigestComparison, type DigestOutcome } from './digest-comparison.ts'
import { speedOf, type Speed } from './timing.ts'
import type { SentColumn, ScratchResult, ScratchResults } from './scratch-results.ts'
import type { Chance, Difference, ReplayError, ReplayVerdict } from './verdict.ts'

export interface ReplaySides {
  /** The baseline: a server of the version that the record comes from. */
  readonly here: ReplayServer
  readonly there: ReplayServer
  readonly scratch: ScratchResults
  readonly signal: AbortSignal
  /** Absent: the baseline always runs the statement again. */
  readonly digests?: DigestComparison | undefined
  /** The names of catalogs on the other server. */
  readonly catalogs: CatalogMap
  /** How often each side is timed if the results are the same; 0: not at all. */
  readonly repeat: number
  /** Set if the baseline serves its users at the same time, and has just recorded the statement. */
  readonly live?: LiveBaseline | undefined
}

/** A baseline that must not be slowed down. */
export interface LiveBaseline {
  /** Whether a statement may run on the baseline now. The replay calls this at most once for each statement. */
  mayRun(): boolean
}

/** Runs a statement on both sides and returns the verdict. @throws Error when a server cannot be reached */
export async function replayStatement(statement: RecordedStatement, sides: ReplaySides): Promise<Replayed> {
  const { scratch } = sides
  const digests = await sides.digests?.replay(statement, sides.there, sides.signal)
  if (digests?.kind === 'same') return digests.replayed
  const spared = sides.live && (await withoutBaseline(statement, digests, sides.live, sides))
  if (spared) return spared
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
    const verdict = await verdictOfDifference(statement, comparison.difference, { here, there }, sides)
    return { verdict, ...shown, examples: comparison.examples }
  } finally {
    await Promise.all([here.drop(), there.drop()])
  }
}

/**
 * The verdict of a statement that a live baseline need not or may not run again; undefined if the baseline runs it.
 * Where digests differ, the text of the statement may explain that without a run.
 */
async function withoutBaseline(
  statement: RecordedStatement,
  digests: Exclude<DigestOutcome, { kind: 'same' }> | undefined,
  live: LiveBaseline,
  { there, signal }: ReplaySides,
): Promise<Replayed | undefined> {
  const difference = digests?.difference
  const known = difference?.kind === 'digest' ? verdictOfText(statement, difference) : undefined
  if (!known && live.mayRun()) return undefined
  const { queryId, ms, error } = digests?.ran ?? (await runThere(statement, there, signal))
  const verdict = known ?? {
    verdict: 'UNCONFIRMED',
    ...(difference && { difference }),
    ...(error && { there: error }),
  }
  return { verdict, ...(!error && { thereMs: ms }), ...(queryId !== '' && { thereQueryId: queryId }), examples: [] }
}

/**
 * The verdict of differing digests if the text of the statement allows them to differ. A LIMIT without an order is reason
 * enough here: to count whether it had to choose among rows may read whole tables of a live baseline.
 */
function verdictOfText(
  statement: RecordedStatement,
  difference: Extract<Difference, { kind: 'digest' }>,
): ReplayVerdict | undefined {
  const query = queryIn(statement)
  if (!query) return undefined
  const anyRows = difference.here === difference.there && hasUnorderedLimit(query)
  const chance: Chance | undefined = chanceIn(query) ?? (anyRows ? { kind: 'limit' } : undefined)
  return chance && { verdict: 'NON_DETERMINISTIC', chance, difference }
}

type Ran = { readonly drop: () => Promise<void>; readonly queryId: string } & (
  | { readonly kind: 'ended'; readonly result: ScratchResult; readonly ms: number }
  | { readonly kind: 'failed'; readonly error: ReplayError }
)

type Ended = Extract<Ran, { kind: 'ended' }>

/** Tables of the baseline whose rows have changed since its first run. */
interface Moved {
  readonly kind: 'moved'
  readonly tables: readonly string[]
}

async function movedBetween(first: Ended, again: Ended, { here }: ReplaySides): Promise<Moved | undefined> {
  const [before, after] = await Promise.all([here.snapshots(first.queryId), here.snapshots(again.queryId)])
  const tables = movedSince(before, after)
  return tables.length === 0 ? undefined : { kind: 'moved', tables }
}

/** The tables whose rows may differ from those of an earlier snapshot. */
function movedSince(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] {
  return [...before].flatMap(([table, snapshot]) => (after.get(table) === snapshot ? [] : [table]))
}

/** Waits for both sides. If one of them cannot be reached, the other is not left running, and its table is dropped. */
async function both(here: Promise<Ran>, there: Promise<Ran>): Promise<readonly [Ran, Ran]> {
  const [first, second] = await Promise.allSettled([here, there])
  if (first.status === 'fulfilled' && second.status === 'fulfilled') return [first.value, second.value]
  for (const one of [first, second]) if (one.status === 'fulfilled') await one.value.drop()
  throw (first.status === 'rejected' ? first : (second as PromiseRejectedResult)).reason
}

/** Limit for all answers of a statement, in characters. It bounds this machine's disk, whatever a server sends. */
const MOST_CHARACTERS = 16 * 1024 ** 3
const TOO_LONG: ReplayError = {
  name: 'RESULT_TOO_LARGE',
  message: `The answers to the statement have more than ${MOST_CHARACTERS.toLocaleString('en-US')} characters`,
}

/** @param sql a text other than the statement's, run in the statement's session */
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
  let characters = 0
  try {
    for await (const answer of server.run(sql, statement, signal)) {
      queryId = answer.queryId
      if (answer.error) return { kind: 'failed', error: answer.error, queryId, drop }
      if (columns.length === 0) columns = answer.columns ?? columns
      characters += answer.text.length
      if (characters > MOST_CHARACTERS) return { kind: 'failed', error: TOO_LONG, queryId, drop }
      if (answer.hasRows) await reader.add(answer.text, columns)
    }
    const ms = performance.now() - startedAt
    return { kind: 'ended', queryId, result: await reader.end(columns), ms, drop }
  } catch (error) {
    await drop()
    throw error
  }
}

/** Times each side in turn, alone; reads the rows and drops them. Undefined for noise, or if a run fails. */
async function timed(statement: RecordedStatement, sides: ReplaySides): Promise<Speed | undefined> {
  const times = { here: [] as number[], there: [] as number[] }
  for (let round = 0; round < sides.repeat; round++)
    for (const side of ['here', 'there'] as const) {
      const startedAt = performance.now()
      for await (const { error } of sides[side].run(statement.sql, statement, sides.signal)) if (error) return undefined
      times[side].push(performance.now() - startedAt)
    }
  return speedOf(times.here, times.there)
}

function figures(here: Ran, there: Ran): Pick<Replayed, 'hereMs' | 'thereMs' | 'thereQueryId'> {
  return {
    ...(here.kind === 'ended' && { hereMs: here.ms }),
    ...(there.kind === 'ended' && { thereMs: there.ms }),
    ...(there.queryId !== '' && { thereQueryId: there.queryId }),
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
  runs: { readonly here: Ended; readonly there: Ended },
  sides: ReplaySides,
): Promise<ReplayVerdict> {
  const chance = difference.kind === 'columns' ? undefined : await chanceOf(statement, runs.here, sides)
  if (chance?.kind === 'moved') return { verdict: 'DATA_MOVED', tables: [...chance.tables], difference }
  if (chance) return { verdict: 'NON_DETERMINISTIC', chance, difference }
  const tables = sides.live ? await movedSinceRecord(statement, runs, sides) : []
  return tables.length > 0
    ? { verdict: 'DATA_MOVED', tables: [...tables], difference }
    : { verdict: 'DIFFERENT', difference }
}

/**
 * The tables that changed between the recorded query and the compared runs, so that the two runs may have read different
 * rows. A table of which both runs read the same snapshot is left out: no two tables have a snapshot in common, so both
 * servers read the same rows.
 */
async function movedSinceRecord(
  statement: RecordedStatement,
  runs: { readonly here: Ended; readonly there: Ended },
  { here, there, catalogs }: ReplaySides,
): Promise<readonly string[]> {
  const after = await here.snapshots(runs.here.queryId)
  // A snapshot that the baseline does not report says nothing.
  const moved = movedSince(statement.snapshots, after).filter((table) => after.has(table))
  if (moved.length === 0) return []
  const other = await there.snapshots(runs.there.queryId)
  return moved.filter((table) => other.get(nameThere(table, catalogs)) !== after.get(table))
}

/** The name `catalog.schema.table` of a table on the other server. */
function nameThere(table: string, catalogs: CatalogMap): string {
  const [catalog = '', ...rest] = table.split('.')
  return [catalogs.get(catalog) ?? catalog, ...rest].join('.')
}

/**
 * Looks for a reason why two runs may rightly differ, cheap checks first: the text, then another run on the baseline,
 * then whether each LIMIT had to choose among rows.
 */
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

/** The count that a server returns. 0 if the question fails: a part of it may depend on a query that it refers to. */
async function countOn(sql: string, statement: RecordedStatement, sides: ReplaySides): Promise<bigint> {
  const asked = await run(sides.here, statement, sides, sql)
  try {
    if (asked.kind === 'failed') return 0n
    return await sides.scratch.countIn(asked.result)
  } finally {
    await asked.drop()
  }
}
