import type { Asker } from '../../connectors/spi/connector.ts'
import type { ScanQuestion, ScanTerm } from '../../connectors/spi/scan-question.ts'
import { enderSeenBy, type SeesEnder } from '../../coordinator/query/stream/ending.ts'
import { shownData } from '../../coordinator/query/stream/shown-event.ts'
import { nodeCode } from '../../shared/node-error.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { ParquetTooLong } from '../../readmodels/archive/parquet-engine.ts'
import type { QueriesPeriod } from '../../readmodels/archive/query-periods.ts'
import { mergedGroups, SumTooLarge, TooManyGroups } from '../../readmodels/history/merge-groups.ts'
import { archivedValue, periodsFor, readFiles, type ArchivedFiles } from '../../readmodels/history/read-archive.ts'
import {
  historyValue,
  type HistoryMoment,
  type HistoryMoments,
  type HistoryValue,
} from '../../readmodels/history/read-history.ts'
import type { Prices } from '../../readmodels/history/prices.ts'
import { archivedStatement, historyStatement, type HistoryReader } from '../../readmodels/history/statement.ts'
import { historyViews, isHistoryView, type HistoryViewName } from '../../readmodels/history/tables.ts'
import { ARCHIVED_COLUMNS, storedEvent, STORED_COLUMNS } from '../../readmodels/query-events/queries.ts'
import type { Authorize } from '../../security/authorization.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { seenBy } from '../access/seen-queries.ts'
import { readFailure } from './read-failure.ts'
import type { HistoryReadQueue } from './history-read-queue.ts'

type Page = readonly (readonly HistoryValue[])[]

/** The user who reads. */
interface HistoryViewer extends HistoryReader {
  readonly seesEnder: SeesEnder
}

export interface HistorySourceDeps {
  readonly moments: HistoryMoments
  /** Reads records that have left the read models. */
  readonly files: ArchivedFiles
  readonly projection: Pick<ProjectionRunner, 'barrier'>
  readonly read: QueryRows
  readonly ownWritesWaitMs: number
  readonly authorize: Authorize
  readonly queue: HistoryReadQueue
  /** The prices in force. @default none */
  readonly prices?: (() => Prices) | undefined
  /** Called with the reason of a failed read; the statement gets another message. */
  readonly onError?: (error: unknown) => void
}

/**
 * The history that a user may see: the queries that they may see, and events about themselves. Users who may see all
 * queries see all of it.
 */
export function createHistorySource({
  moments,
  files,
  projection,
  read,
  ownWritesWaitMs,
  authorize,
  queue,
  prices,
  onError,
}: HistorySourceDeps) {
  return {
    /** @param table a table of the history */
    async *read(table: string, question: ScanQuestion, columns: readonly string[], asker: Asker): AsyncGenerator<Page> {
      const end = await queue.take(asker.owner)
      let moment: HistoryMoment | undefined
      try {
        await projection.barrier(ownWritesWaitMs)
        const { filter } = await seenBy(asker, authorize, read)
        const viewer = { sight: filter.seen, prices: prices?.(), seesEnder: enderSeenBy(asker, authorize) }
        moment = await moments()
        yield* readParts({ moment, files, viewer }, viewOf(table), question, columns)
      } catch (error) {
        if (error instanceof EngineError) throw error
        onError?.(error)
        throw asQueryError(error)
      } finally {
        await moment?.end()
        end()
      }
    },
  }
}

/** @throws Error when the history has no such table */
function viewOf(table: string): HistoryViewName {
  if (!isHistoryView(table)) throw new Error(`The history has no table ${JSON.stringify(table)}`)
  return table
}

interface Parts {
  readonly moment: HistoryMoment
  readonly files: ArchivedFiles
  readonly viewer: HistoryViewer
}

/**
 * Reads the read models, then the archive. They have no row in common, and all rows of one query are in one of them.
 */
async function* readParts(
  parts: Parts,
  table: HistoryViewName,
  question: ScanQuestion,
  columns: readonly string[],
): AsyncGenerator<Page> {
  const { periods } = parts.moment.archived
  if (periods.length === 0) return yield* readHot(parts, table, question, columns)
  const asked = { ...question, terms: await withoutQuestions(parts, table, question.terms) }
  const found = historyViews[table].archived.length === 0 ? [] : periodsFor(periods, table, asked)
  const hot = readHot(parts, table, asked, columns)
  if (found.length === 0) return yield* hot
  const archived = readArchived(parts, found, table, asked, columns)
  if (asked.groups) yield await mergedGroups(asked.groups, columns, [hot, archived])
  else {
    yield* hot
    yield* archived
  }
}

/** The most values of another table that are written into the statement. */
const VALUES = 10_000
const IDS: ReadonlySet<string> = new Set(['query_id', 'stream'])

/**
 * Replaces conditions on other tables by their values, from both parts. Where there are too many values, conditions on
 * ids are evaluated in each part by itself. Other conditions are then left out: the engine checks the rows again.
 */
async function withoutQuestions(
  parts: Parts,
  table: HistoryViewName,
  terms: readonly ScanTerm[],
): Promise<readonly ScanTerm[]> {
  const plain: ScanTerm[] = []
  for (const term of terms) {
    if (!('among' in term)) {
      plain.push(term)
      continue
    }
    const { column, question } = term.among
    const other = viewOf(term.among.table)
    const values = await valuesOf(parts, other, question, column)
    const archived = [table, other].every((one) => historyViews[one].archived.length > 0)
    if (values) plain.push({ column: term.column, in: values })
    else if (archived && !question.groups && IDS.has(term.column) && IDS.has(column)) plain.push(term)
  }
  return plain
}

/** The values of a column. @returns undefined where there are too many */
async function valuesOf(
  parts: Parts,
  table: HistoryViewName,
  question: ScanQuestion,
  column: string,
): Promise<string[] | undefined> {
  const values = new Set<string>()
  for await (const page of readParts(parts, table, question, [column]))
    for (const [value] of page) {
      if (value !== null && value !== undefined) values.add(String(value))
      if (values.size > VALUES) return undefined
    }
  return [...values]
}

/** The error for the statement. Its text says nothing about the database or other users' rows. */
function asQueryError(error: unknown): EngineError {
  if (error instanceof ParquetTooLong)
    return new EngineError('EXCEEDED_TIME_LIMIT', 'The history took too long to read: ask for less of it')
  if (error instanceof SumTooLarge) return new EngineError('NUMERIC_VALUE_OUT_OF_RANGE', error.message)
  if (error instanceof TooManyGroups)
    return new EngineError(
      'EXCEEDED_LOCAL_MEMORY_LIMIT',
      `${error.message}: ask for a shorter time, or for fewer groups`,
    )
  if (nodeCode(error) === '22003') return new EngineError('NUMERIC_VALUE_OUT_OF_RANGE', 'bigint addition overflow')
  return readFailure(error, 'The history of queries')
}

/** Rows that are read at once. With long texts only a few, since each may be a megabyte. */
const PAGE = { rows: 1000, texts: 20 }
const LONG: ReadonlySet<string> = new Set(['query', 'error_message', 'data', 'object', 'columns', 'retry_reason'])

/** Rows in the read models. */
async function* readHot(
  { moment, viewer }: Parts,
  table: HistoryViewName,
  question: ScanQuestion,
  columns: readonly string[],
): AsyncGenerator<Page> {
  const made = makesData(table, question, columns)
  const asked = made ? columns.filter((column) => column !== 'data') : columns
  const statement = historyStatement(table, question, asked, viewer, made ? STORED_COLUMNS : [])
  const rowsAtATime = isLong(question, columns) ? PAGE.texts : PAGE.rows
  for await (const rows of moment.pages(statement, rowsAtATime))
    yield rows.map((row) => {
      const values = statement.types.map((type, i) => historyValue(row[i], type))
      return made ? withData(values, row.slice(asked.length), columns, viewer.seesEnder) : values
    })
}

/** Rows that have left the read models. */
async function* readArchived(
  { moment, files, viewer }: Parts,
  periods: readonly QueriesPeriod[],
  table: HistoryViewName,
  question: ScanQuestion,
  columns: readonly string[],
): AsyncGenerator<Page> {
  const made = makesData(table, question, columns)
  const asked = made ? columns.filter((column) => column !== 'data') : columns
  const statement = archivedStatement(table, question, asked, viewer, made ? ARCHIVED_COLUMNS : [])
  for await (const rows of readFiles(files, statement, periods, moment.archived.forgotten))
    yield rows.map((row) => {
      const values = statement.types.map((type, i) => archivedValue(row[i], type))
      return made ? withData(values, row.slice(asked.length), columns, viewer.seesEnder) : values
    })
}

/** Whether the column `data` must be made from whole events, because parts that no user may see are removed from it. */
function makesData(table: HistoryViewName, { groups }: ScanQuestion, columns: readonly string[]): boolean {
  return table === 'events' && !groups && columns.includes('data')
}

function withData(
  values: readonly HistoryValue[],
  stored: readonly unknown[],
  columns: readonly string[],
  seesEnder: SeesEnder,
): HistoryValue[] {
  const event = storedEvent(stored)
  const data = event.forgotten ? null : JSON.stringify(shownData(event, seesEnder))
  return values.toSpliced(columns.indexOf('data'), 0, data)
}

function isLong({ groups }: ScanQuestion, columns: readonly string[]): boolean {
  if (!groups) return columns.some((column) => LONG.has(column))
  return [...groups.keys, ...groups.measures].some(({ column }) => column !== undefined && LONG.has(column))
}
