import { useCallback, useEffect, useReducer, useRef } from 'react'
import type { ResultColumn, Row } from '../../../api/statement/formats.ts'
import type { StatementSession } from '../../../api/statement/session.ts'
import {
  cancelStatement,
  keepAlive,
  postStatement,
  type StatementAnswer,
} from '../../../api/statement/statement-client.ts'
import { readWindow, type RowCursor } from './row-window.ts'

/** Less than the time after which the server ends a query whose client sends no request. */
const KEEP_ALIVE_MS = 30_000

export interface StatementRun {
  /**
   * `idle`: nothing was run. `rows`: a thousand rows are shown, and there are more. `reading`: the next ones are read.
   * `canceled`: by the user.
   */
  readonly phase: 'idle' | 'running' | 'rows' | 'reading' | 'ended' | 'canceled'
  readonly queryId: string | undefined
  readonly columns: readonly ResultColumn[] | undefined
  readonly rows: readonly Row[]
  /** Number of the first row that is shown, from 0. */
  readonly firstRow: number
  readonly answer: StatementAnswer | undefined
  /** A request failed, or the server refused the statement. */
  readonly problem: Error | undefined
}

const IDLE: StatementRun = {
  phase: 'idle',
  queryId: undefined,
  columns: undefined,
  rows: [],
  firstRow: 0,
  answer: undefined,
  problem: undefined,
}

/** A statement of the editor: runs it, shows its rows a thousand at a time, and cancels it when the page is left. */
export function useStatementRun(onSession: (session: StatementSession) => void) {
  const [run, change] = useReducer(
    (before: StatementRun, changes: Partial<StatementRun>): StatementRun => ({ ...before, ...changes }),
    IDLE,
  )
  const cursor = useRef<RowCursor>(undefined)
  const session = useRef<StatementSession>(undefined)
  const stopping = useRef(new AbortController())

  const end = useCallback(() => {
    stopping.current.abort()
    if (cursor.current) void cancelStatement(cursor.current.path).catch(() => undefined)
    cursor.current = undefined
  }, [])

  const more = useCallback(
    async (firstRow: number) => {
      const from = cursor.current
      if (!from || !session.current) return
      const { signal } = stopping.current
      change({ phase: firstRow === 0 ? 'running' : 'reading' })
      try {
        const next = await readWindow(from, session.current, signal, (answer, rows) => {
          if (signal.aborted) return
          cursor.current = { path: answer.next ?? from.path, skip: 0 }
          session.current = answer.session
          // The rows before stay until there are further ones.
          change({
            answer,
            ...(rows.length > 0 && { rows, firstRow }),
            ...(answer.columns && { columns: answer.columns }),
          })
        })
        if (signal.aborted) return
        cursor.current = next
        change({ phase: next ? 'rows' : 'ended' })
        onSession(session.current)
      } catch (error) {
        if (!signal.aborted) change({ phase: 'ended', problem: asError(error) })
      }
    },
    [onSession],
  )

  const start = useCallback(
    async (sql: string, used: StatementSession) => {
      end()
      const controller = new AbortController()
      stopping.current = controller
      change({ ...IDLE, phase: 'running' })
      try {
        const answer = await postStatement(sql, used, controller.signal)
        if (controller.signal.aborted) return
        session.current = answer.session
        cursor.current = answer.next === undefined ? undefined : { path: answer.next, skip: 0 }
        change({ queryId: answer.queryId, answer, columns: answer.columns })
        if (cursor.current) await more(0)
        else change({ phase: 'ended' })
      } catch (error) {
        if (!controller.signal.aborted) change({ phase: 'ended', problem: asError(error) })
      }
    },
    [end, more],
  )

  const cancel = useCallback(() => {
    end()
    change({ phase: 'canceled' })
  }, [end])

  useEffect(() => end, [end])
  useEffect(() => {
    if (run.phase !== 'rows') return
    const timer = setInterval(() => {
      if (cursor.current) void keepAlive(cursor.current.path).catch(() => undefined)
    }, KEEP_ALIVE_MS)
    return () => clearInterval(timer)
  }, [run.phase])
  return { run, start, cancel, more: () => more(run.firstRow + run.rows.length) }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
