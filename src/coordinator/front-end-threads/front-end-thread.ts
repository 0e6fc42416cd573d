import { readFileSync, readlinkSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { MetadataPort } from '../../sql/front-end.ts'
import type { ObjectRights } from '../../shared/object-rights.ts'
import { createStatementPlanner } from '../../planner/statement-planner.ts'
import { fingerprintOf } from '../../sql/fingerprint.ts'
import { StatementText, type PreparedTexts } from '../../sql/parsed-statement.ts'
import { checkPreparedTexts } from '../../sql/planning-limits.ts'
import type { SessionContext } from '../../sql/session.ts'
import { queryTypeOf } from '../../sql/statements/query-type.ts'
import { tablesOfBareInserts } from '../../sql/syntax/redact-secrets.ts'
import { findSecrets, recordedTypeOf } from '../query/secrets/query-secrets.ts'
import { surveyOf } from './survey-of.ts'
import { packError, unpackError } from './thread-errors.ts'
import type {
  AnsweredNow,
  AskedLater,
  AskedNow,
  FromThread,
  PlainSession,
  ThreadAnswers,
  ThreadData,
  FrontEndTask,
  ToThread,
} from './thread-messages.ts'

// The program of a thread that parses and analyses long statements, one after the other; `front-end-threads.ts` starts
// it.

const { answers, answered } = workerData as ThreadData
const loop = threadIsMeasured() ? { threadCpuMs } : {}
const planner = createStatementPlanner(loop)
const waiting = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>()
/** The number of the question whose answer was this error: the process keeps the original errors. */
const refused = new WeakMap<object, number>()
let asked = 0
/**
 * The text of the last task. The next task usually plans the statement whose secrets the last one found, and need not
 * parse it again. Any other task frees the memory.
 */
let last: StatementText | undefined

parentPort!.on('message', (message: ToThread) => {
  if (message.type === 'task') return void carryOut(message.task)
  const question = waiting.get(message.number)
  waiting.delete(message.number)
  if (message.type === 'answer') return question?.resolve(message.value)
  const error =
    message.error.kind === 'asked' ? new Error('An answer refers to no question') : unpackError(message.error)
  refused.set(error, message.number)
  question?.reject(error)
})
send({ type: 'started', id: threadIsMeasured() ? readlinkSync('/proc/thread-self').split('/').at(-1) : undefined })

function send(message: FromThread): void {
  parentPort!.postMessage(message)
}

async function carryOut(task: FrontEndTask): Promise<void> {
  try {
    send({ type: 'done', value: await answerOf(task) })
  } catch (error) {
    const number = typeof error === 'object' && error !== null ? refused.get(error) : undefined
    send({ type: 'failed', error: number === undefined ? packError(error) : { kind: 'asked', number } })
  }
}

async function answerOf(task: FrontEndTask): Promise<ThreadAnswers[FrontEndTask['kind']]> {
  switch (task.kind) {
    case 'plan': {
      const session = sessionOf(task.session)
      const parsed = planner.parse(takeText(task.sql, session.preparedStatements), session)
      const planned = await planner.plan(parsed, {
        session,
        metadata: metadataOf(task),
        onTimes: (times) => send({ type: 'times', times }),
      })
      return { planned, fingerprint: task.withFingerprint ? fingerprintOf(parsed, session) : undefined }
    }
    case 'findSecrets': {
      const text = takeText(task.sql, task.session.preparedStatements)
      const tables = tablesOfBareInserts(text)
      const intoSecrets = tables.length > 0 && (await ask<boolean>({ of: 'secretColumns', tables }))
      const found = findSecrets(text, task.session, { intoSecrets })
      const type = task.withType ? recordedTypeOf(text, found) : undefined
      last = text
      return { ...found, type }
    }
    case 'survey': {
      const text = takeText(task.sql, task.preparedStatements)
      const survey = surveyOf(text, task.at)
      last = text
      return survey
    }
    case 'checkPrepared':
      return checkPreparedTexts(task.preparedStatements, loop)
    case 'queryType': {
      const text = takeText(task.sql, task.preparedStatements)
      const type = queryTypeOf(text)
      last = text
      return type
    }
  }
}

function takeText(sql: string, prepared: PreparedTexts): StatementText {
  const before = last
  last = undefined
  return before?.sql === sql && isDeepStrictEqual(before.prepared.sent, prepared)
    ? before
    : new StatementText(sql, prepared)
}

function metadataOf({ catalogs }: Extract<FrontEndTask, { kind: 'plan' }>): MetadataPort {
  const abilities = new Map(catalogs)
  return {
    catalogs: () => [...abilities.keys()],
    abilities: (catalog) => abilities.get(catalog),
    schemas: (catalog) => ask({ of: 'schemas', catalog }),
    tables: (catalog, schema) => ask({ of: 'tables', catalog, schema }),
    table: (catalog, schema, table, at) => ask({ of: 'table', catalog, schema, table, at }),
    statistics: (catalog, handle) => ask({ of: 'statistics', catalog, handle }),
  }
}

function sessionOf({ has, ...session }: PlainSession): SessionContext {
  return {
    ...session,
    onRuleFault: (message) => send({ type: 'ruleFault', message }),
    ...(has.mayBecome && { mayBecome: (user: string) => askNow<boolean>({ of: 'mayBecome', user }) }),
    ...(has.rights && { rightsOf: rightsOfOne() }),
  }
}

/** Rights of one statement; they are asked of the process, each question once. */
function rightsOfOne(): (user: string) => ObjectRights {
  const known = new Map<string, unknown>()
  return (user) => {
    const right = <R extends keyof ObjectRights>(name: R) =>
      ((...given: Parameters<ObjectRights[R]>): ReturnType<ObjectRights[R]> => {
        const key = JSON.stringify([user, name, given])
        if (!known.has(key)) known.set(key, askNow({ of: 'rights', user, right: name, given }))
        return known.get(key) as ReturnType<ObjectRights[R]>
      }) as ObjectRights[R]
    return {
      catalog: right('catalog'),
      showsCatalog: right('showsCatalog'),
      showsSchema: right('showsSchema'),
      ownsSchema: right('ownsSchema'),
      table: right('table'),
      functionPrivileges: right('functionPrivileges'),
      procedurePrivileges: right('procedurePrivileges'),
      givesTo: right('givesTo'),
      setsSystemProperty: right('setsSystemProperty'),
      setsCatalogProperty: right('setsCatalogProperty'),
    }
  }
}

function ask<T>(question: AskedLater): Promise<T> {
  const number = ++asked
  return new Promise<unknown>((resolve, reject) => {
    waiting.set(number, { resolve, reject })
    send({ type: 'ask', number, asked: question })
  }) as Promise<T>
}

/** Blocks this thread until the process has answered. */
function askNow<T>(question: AskedNow): T {
  const before = Atomics.load(answered, 0)
  send({ type: 'askNow', asked: question })
  Atomics.wait(answered, 0, before)
  const { message } = receiveMessageOnPort(answers) as { readonly message: AnsweredNow }
  if ('value' in message) return message.value as T
  throw message.error.kind === 'asked' ? new Error('An answer refers to no question') : unpackError(message.error)
}

/** Whether the system reports the CPU time of one thread. Linux does. */
function threadIsMeasured(): boolean {
  try {
    return threadCpuMs() >= 0
  } catch {
    return false
  }
}

function threadCpuMs(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ', 1)[0]) / 1e6
}
