import type { ConnectorAbilities, TableHandle, TablePoint } from '../../connectors/spi/connector.ts'
import type { ErrorLocation, ErrorName } from '../../shared/engine-error.ts'
import type { ObjectRights } from '../../shared/object-rights.ts'
import type { PlannedStatement } from '../../planner/planned-statement.ts'
import type { Fingerprint, NameDefaults } from '../../sql/fingerprint.ts'
import type { FrontEndTimes, QueryType } from '../../sql/front-end.ts'
import type { SessionContext } from '../../sql/session.ts'
import type { ExplainedStatement } from '../../sql/statements/query-type.ts'
import type { StatementNames } from '../../sql/statement-names.ts'
import type { QuerySession } from '../query/stream/events.ts'
import type { FoundSecrets } from '../query/secrets/query-secrets.ts'

/*
 * The messages between the process and a thread of the front end. All of them are plain data, copied on their way.
 *
 *   process                       thread
 *      │ ──────── task ───────────► │
 *      │ ◄─────── ask ───────────── │  questions that it awaits: tables, schemas
 *      │ ──────── answer ─────────► │
 *      │ ◄─────── askNow ────────── │  questions in the middle of the analyser's work: rights. The thread
 *      │ ──────── answer (port) ──► │  blocks until the answer is there, the process never waits
 *      │ ◄─────── done, failed ──── │
 */

/** The data with which a thread is started. */
export interface ThreadData {
  /** Carries answers to `askNow`. */
  readonly answers: import('node:worker_threads').MessagePort
  /** Increases with each of these answers: the thread sleeps on it. */
  readonly answered: Int32Array
}

/** A session without its functions, which the thread asks the process for. */
export interface PlainSession extends Omit<SessionContext, 'mayBecome' | 'rightsOf' | 'onRuleFault'> {
  readonly has: { readonly mayBecome: boolean; readonly rights: boolean }
}

export type FrontEndTask =
  | {
      readonly kind: 'plan'
      readonly sql: string
      readonly session: PlainSession
      readonly catalogs: readonly (readonly [name: string, abilities: ConnectorAbilities | undefined])[]
      readonly withFingerprint: boolean
    }
  | {
      readonly kind: 'findSecrets'
      readonly sql: string
      readonly session: QuerySession
      readonly withType: boolean
    }
  | {
      readonly kind: 'survey'
      readonly sql: string
      readonly at: NameDefaults
      readonly preparedStatements: Readonly<Record<string, string>>
    }
  | { readonly kind: 'checkPrepared'; readonly preparedStatements: Readonly<Record<string, string>> }
  | {
      readonly kind: 'queryType'
      readonly sql: string
      readonly preparedStatements: Readonly<Record<string, string>>
    }

/** The answer of each kind of task. */
export interface ThreadAnswers {
  readonly plan: { readonly planned: PlannedStatement; readonly fingerprint: Fingerprint | undefined }
  readonly findSecrets: FoundSecrets & { readonly type: QueryType | undefined }
  readonly survey: StatementSurvey
  readonly queryType: QueryType | undefined
  readonly checkPrepared: void
}

/** The properties of a statement's syntax that decide its route: see `namesIn` and `readsOnly`. */
export interface StatementSurvey extends StatementNames {
  readonly readOnly: boolean
  readonly queryType: QueryType | undefined
  readonly explains: ExplainedStatement | undefined
  readonly fingerprint: Fingerprint | undefined
}

export type AskedLater =
  | { readonly of: 'schemas'; readonly catalog: string }
  | { readonly of: 'tables'; readonly catalog: string; readonly schema: string | undefined }
  | {
      readonly of: 'table'
      readonly catalog: string
      readonly schema: string
      readonly table: string
      readonly at: TablePoint | undefined
    }
  | { readonly of: 'statistics'; readonly catalog: string; readonly handle: TableHandle }
  /** Whether one of these tables has a column with the name of a secret. */
  | { readonly of: 'secretColumns'; readonly tables: readonly (readonly string[])[] }

export type AskedNow =
  | {
      readonly of: 'rights'
      readonly user: string
      readonly right: keyof ObjectRights
      readonly given: readonly unknown[]
    }
  | { readonly of: 'mayBecome'; readonly user: string }

/** An error in a message between threads. */
export type ThreadError =
  | {
      readonly kind: 'engine'
      readonly errorName: ErrorName
      readonly message: string
      readonly location: ErrorLocation | undefined
    }
  /** The answer to the question with this number was an error, and the task fails with it. */
  | { readonly kind: 'asked'; readonly number: number }
  | { readonly kind: 'bug'; readonly stack: string }

export type ToThread =
  | { readonly type: 'task'; readonly task: FrontEndTask }
  | { readonly type: 'answer'; readonly number: number; readonly value: unknown }
  | { readonly type: 'refused'; readonly number: number; readonly error: ThreadError }

export type FromThread =
  /** Sent once, after the start. `id`: the system's id of the thread, where the system reports it. */
  | { readonly type: 'started'; readonly id: string | undefined }
  | { readonly type: 'ask'; readonly number: number; readonly asked: AskedLater }
  | { readonly type: 'askNow'; readonly asked: AskedNow }
  | { readonly type: 'times'; readonly times: FrontEndTimes }
  | { readonly type: 'ruleFault'; readonly message: string }
  | { readonly type: 'done'; readonly value: ThreadAnswers[keyof ThreadAnswers] }
  | { readonly type: 'failed'; readonly error: ThreadError }

/** Answers to `askNow`, through the port. */
export type AnsweredNow = { readonly value: unknown } | { readonly error: ThreadError }
