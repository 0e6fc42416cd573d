import type { Asker } from '../../connectors/spi/connector.ts'
import type { ScanQuestion } from '../../connectors/spi/scan-question.ts'
import { enderSeenBy, type SeesEnder } from '../../coordinator/query/ending.ts'
import { shownData } from '../../coordinator/query/shown-event.ts'
import { nodeCode } from '../../shared/node-error.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { historyValue, type HistoryPages, type HistoryValue } from '../../readmodels/history/read-history.ts'
import { historyStatement, type HistorySight } from '../../readmodels/history/statement.ts'
import type { HistoryViewName } from '../../readmodels/history/tables.ts'
import { storedEvent, STORED_COLUMNS } from '../../readmodels/query-events/queries.ts'
import type { Authorize } from '../../security/authorization.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { seenBy } from '../access/seen-queries.ts'
import type { HistoryTurns } from './history-turns.ts'

type Page = readonly (readonly HistoryValue[])[]

/**
 * Rows of a part of the history: what is in the read models, or what was archived. Their answers put together are all of it; what
 * is of one query is in one part.
 */
export interface HistoryStore {
  read(
    table: HistoryViewName,
    question: ScanQuestion,
    columns: readonly string[],
    viewer: HistoryViewer,
  ): AsyncIterable<Page>
}

/** Who looks. */
export interface HistoryViewer {
  /** Absent, where he sees all. */
  readonly sight: HistorySight
  readonly seesEnder: SeesEnder
}

export interface HistorySourceDeps {
  /** Parts that have no row in common. */
  readonly stores: readonly [HistoryStore, ...HistoryStore[]]
  readonly projection: Pick<ProjectionRunner, 'barrier'>
  readonly read: QueryRows
  readonly ownWritesWaitMs: number
  readonly authorize: Authorize
  readonly turns: HistoryTurns
  /** Why it could not be read; the statement is told in other words. */
  readonly onError?: (error: unknown) => void
}

/** The history that somebody may see: what he may see of queries, and what was of himself; all, for who sees all. */
export function createHistorySource({
  stores,
  projection,
  read,
  ownWritesWaitMs,
  authorize,
  turns,
  onError,
}: HistorySourceDeps) {
  return {
    async *read(
      table: HistoryViewName,
      question: ScanQuestion,
      columns: readonly string[],
      asker: Asker,
    ): AsyncGenerator<Page> {
      const { user, originalUser = user } = asker
      const end = await turns.take({ address: originalUser, user })
      try {
        await projection.barrier(ownWritesWaitMs)
        const { filter } = await seenBy(asker, authorize, read)
        const viewer = { sight: filter.seen, seesEnder: enderSeenBy(asker, authorize) }
        for (const store of stores) yield* store.read(table, question, columns, viewer)
      } catch (error) {
        if (error instanceof EngineError) throw error
        onError?.(error)
        throw asTold(error)
      } finally {
        end()
      }
    },
  }
}

/** In words that tell nothing of the database, nor of anybody's rows. */
function asTold(error: unknown): EngineError {
  switch (nodeCode(error)) {
    case '57014':
      return new EngineError('EXCEEDED_TIME_LIMIT', 'The history took too long to be read: ask for less of it')
    case '22003':
      return new EngineError('NUMERIC_VALUE_OUT_OF_RANGE', 'bigint addition overflow')
    default:
      return new EngineError('REMOTE_HOST_GONE', 'The history of queries cannot be read now: its database is away')
  }
}

/** Rows that are read at once: with texts few, each may be a megabyte. */
const PAGE = { rows: 1000, texts: 20 }
const LONG: ReadonlySet<string> = new Set(['query', 'error_message', 'data', 'object', 'columns', 'retry_reason'])

/** What the read models have. */
export function createHotHistory(pages: HistoryPages): HistoryStore {
  return {
    async *read(table, question, columns, { sight, seesEnder }) {
      const made = table === 'events' && !question.groups && columns.includes('data')
      const asked = made ? columns.filter((column) => column !== 'data') : columns
      const statement = historyStatement(table, question, asked, sight, made ? STORED_COLUMNS : [])
      const rowsAtATime = isLong(question, columns) ? PAGE.texts : PAGE.rows
      for await (const rows of pages(statement, rowsAtATime))
        yield rows.map((row) => {
          const values = statement.types.map((type, i) => historyValue(row[i], type))
          if (!made) return values
          const event = storedEvent(row.slice(asked.length))
          values.splice(
            columns.indexOf('data'),
            0,
            event.forgotten ? null : JSON.stringify(shownData(event, seesEnder)),
          )
          return values
        })
    },
  }
}

function isLong({ groups }: ScanQuestion, columns: readonly string[]): boolean {
  if (!groups) return columns.some((column) => LONG.has(column))
  return [...groups.keys, ...groups.measures].some(({ column }) => column !== undefined && LONG.has(column))
}
