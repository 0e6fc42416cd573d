import type { TableHandle } from '../../connectors/spi/connector.ts'
import { HoldsLoop } from '../../shared/cpu-budget.ts'
import type { ObjectRights } from '../../shared/object-rights.ts'
import { mapQueries, type PlannedStatement } from '../../planner/planned-statement.ts'
import { createStatementPlanner, type StatementPlanner } from '../../planner/statement-planner.ts'
import type { FrontEndTimes, MetadataPort, SessionContext } from '../../sql/front-end.ts'
import { fingerprintOf, type Fingerprint } from '../../sql/fingerprint.ts'
import type { StatementText } from '../../sql/parsed-statement.ts'
import type { FrontEndThreads, ThreadCaller, ThreadHost } from './front-end-threads.ts'
import { surveyOf } from './survey-of.ts'
import type { AskedLater, AskedNow, PlainSession, StatementSurvey } from './thread-messages.ts'

/** A text with at least this many characters is parsed and analysed in a thread. */
export const LONG_TEXT = 64 * 1024

/** A shorter text that has blocked the event loop for this long, milliseconds, is started again in a thread. */
export const LONGEST_HOLD_MS = 100

/** A front end in which no statement blocks the event loop. */
export interface ThreadedFrontEnd {
  /** Parses a text, unless it was parsed before, and finds the properties of its syntax that decide its route. */
  survey(text: StatementText, session: SessionContext, caller: ThreadCaller): Promise<StatementSurvey>
  /**
   * Parses a text, unless it was parsed before, binds it and renders its queries: see `StatementPlanner`. A statement in
   * a thread also ends with the caller's signal.
   */
  plan(
    text: StatementText,
    session: SessionContext,
    metadata: MetadataPort,
    caller: ThreadCaller & {
      readonly onTimes?: (times: FrontEndTimes) => void
      readonly onFingerprint?: ((fingerprint: Fingerprint | undefined) => void) | undefined
    },
  ): Promise<PlannedStatement>
}

/** Analyses short statements in this thread; statements that are long or turn out to take long, in another. */
export function createThreadedFrontEnd(
  threads: Pick<FrontEndThreads, 'run'>,
  here: StatementPlanner = createStatementPlanner({ holdMs: LONGEST_HOLD_MS }),
): ThreadedFrontEnd {
  return {
    async survey(text, session, caller) {
      const { sql } = text
      if (charactersOf(sql, session) < LONG_TEXT) {
        try {
          here.parse(text, session)
          return surveyOf(text, session)
        } catch (error) {
          if (!(error instanceof HoldsLoop)) throw error
        }
      }
      const { preparedStatements, catalog, schema } = session
      const task = { kind: 'survey', sql, preparedStatements, at: { catalog, schema } } as const
      const host = { later: () => Promise.reject(new Error('The syntax of a statement depends on nothing else')) }
      return threads.run(task, host, caller)
    },
    async plan(text, session, metadata, caller) {
      const { sql } = text
      if (charactersOf(sql, session) < LONG_TEXT) {
        try {
          const parsed = here.parse(text, session)
          const planned = await here.plan(parsed, { session, metadata, onTimes: caller.onTimes })
          caller.onFingerprint?.(fingerprintOf(parsed, session))
          return planned
        } catch (error) {
          if (!(error instanceof HoldsLoop)) throw error
        }
      }
      const handles = new Map<string, TableHandle>()
      const catalogs = metadata.catalogs().map((name) => [name, metadata.abilities(name)] as const)
      const withFingerprint = caller.onFingerprint !== undefined
      const task = { kind: 'plan', sql, session: plainSession(session), catalogs, withFingerprint } as const
      const { planned, fingerprint } = await threads.run(
        task,
        hostOf(session, metadata, handles, caller.onTimes),
        caller,
      )
      caller.onFingerprint?.(fingerprint)
      return withHandles(planned, handles)
    },
  }
}

/** The number of characters of a statement and of the prepared statements that it may execute. */
export function charactersOf(sql: string, { preparedStatements }: Pick<SessionContext, 'preparedStatements'>): number {
  return Object.values(preparedStatements).reduce((sum, { length }) => sum + length, sql.length)
}

function plainSession({ mayBecome, rightsOf, onRuleFault, ...plain }: SessionContext): PlainSession {
  void onRuleFault
  return { ...plain, has: { mayBecome: mayBecome !== undefined, rights: rightsOf !== undefined } }
}

function hostOf(
  session: SessionContext,
  metadata: MetadataPort,
  handles: Map<string, TableHandle>,
  onTimes: ((times: FrontEndTimes) => void) | undefined,
): ThreadHost {
  return {
    later: (asked) => answerLater(asked, metadata, handles),
    now: (asked) => answerNow(asked, session),
    ...(onTimes && { onTimes }),
    ...(session.onRuleFault && { onRuleFault: session.onRuleFault }),
  }
}

async function answerLater(
  asked: AskedLater,
  metadata: MetadataPort,
  handles: Map<string, TableHandle>,
): Promise<unknown> {
  switch (asked.of) {
    case 'schemas':
      return metadata.schemas(asked.catalog)
    case 'tables':
      return metadata.tables(asked.catalog, asked.schema)
    case 'table': {
      const table = await metadata.table(asked.catalog, asked.schema, asked.table, asked.at)
      if (table) handles.set(JSON.stringify(table.handle), table.handle)
      return table
    }
    case 'statistics':
      return metadata.statistics(asked.catalog, known(asked.handle, handles))
    case 'secretColumns':
      throw new Error('An analysis asks for no secrets')
  }
}

function answerNow(asked: AskedNow, { mayBecome, rightsOf }: SessionContext): unknown {
  if (asked.of === 'mayBecome') return mayBecome?.(asked.user) ?? false
  const rights: ObjectRights | undefined = rightsOf?.(asked.user)
  if (rights === undefined) throw new Error('Rights are asked for where there are no rules')
  return Reflect.apply(rights[asked.right], rights, asked.given) as unknown
}

/** The connector's own handle, which the connector may recognise by identity: a thread returns copies. */
function known(handle: TableHandle, handles: ReadonlyMap<string, TableHandle>): TableHandle {
  return handles.get(JSON.stringify(handle)) ?? handle
}

/** The statement with the handles of the connectors in place of the thread's copies. */
function withHandles(statement: PlannedStatement, handles: ReadonlyMap<string, TableHandle>): PlannedStatement {
  return mapQueries(statement, (query) => ({
    ...query,
    scans: query.scans.map((scan) => ({ ...scan, handle: known(scan.handle, handles) })),
  }))
}
