import { setTimeout as sleep } from 'node:timers/promises'
import type { StatementJson } from '../support/statement-client.ts'
import { Connection, NoAnswer, type Access, type Answer } from './http.ts'
import { ChangeDrawer, ownerOf, refusals, textOfChange, type DrawnChange } from './drawn-changes.ts'
import { cleanErrors } from './outcome.ts'
import type { EventPoint } from './plan.ts'
import type { Random } from './random.ts'

/** The end of a write as its client saw it. It decides what the tables must contain. */
export type WriteEnd =
  /** The server reported success: the write exists once. */
  | 'done'
  /** The server reported a failure, or the client never followed: the write does not exist. */
  | 'not done'
  /** The client left during the write: it exists completely or not at all. */
  | 'unknown'

export interface WriteOutcome {
  readonly id?: string
  readonly client: string
  readonly behaviour: string
  readonly write: Write
  readonly end: WriteEnd
  /** The reason why the write was not done, or the defect of the server. */
  readonly why?: string
  /** The number of rows that the server reported. */
  readonly count?: number
  readonly wrong?: true
  /** Milliseconds since the clients began. */
  readonly fromMs: number
  readonly toMs: number
}

/** A write of the mix. A name is never used twice, except for names of changes. */
export type Write =
  | { readonly kind: 'insert'; readonly batch: string; readonly rows: number }
  | { readonly kind: 'create table'; readonly table: string; readonly rows: number }
  | { readonly kind: 'drop table'; readonly table: string }
  | { readonly kind: 'create view'; readonly view: string }
  | { readonly kind: 'drop view'; readonly view: string }
  | { readonly kind: 'change'; readonly change: DrawnChange }

export const SCHEMA = 'memory.default'
export const LEDGER = `${SCHEMA}.ledger`
export const CREATE_LEDGER = `CREATE TABLE IF NOT EXISTS ${LEDGER} (batch varchar, n bigint)`

/** The tables that writes read: name, a column, number of rows. */
const SOURCES = [
  ['nation', 'nationkey', 25],
  ['lineitem', 'orderkey', 60_175],
] as const

const BEHAVIOURS = ['follow', 'repeat', 'repeat', 'cut', 'post twice', 'cancel', 'leave after post', 'leave'] as const
type Behaviour = (typeof BEHAVIOURS)[number]
/** The behaviours after which the client knows how the statement ended. */
const KNOWING = ['follow', 'repeat', 'cut', 'post twice', 'cancel', 'leave after post'] as const satisfies Behaviour[]

const NONE: ReadonlySet<string> = new Set()
const PATIENCE_MS = 45_000
const PAUSE_MS = 50

class Wrong extends Error {}

export interface WritingClientOptions {
  readonly base: string
  readonly name: string
  readonly random: Random
  readonly now: () => number
  readonly passed: (point: EventPoint) => void
  readonly untilMs: number
  /** The credentials for a server that is not open. */
  readonly access?: Access
  /** The longest time for which a client repeats a request; later the statement counts as hanging. @default 45 s */
  readonly patienceMs?: number
  /** The client waits this long after each statement. @default 0 */
  readonly pauseMs?: number
  /** Whether the writes are delegated to a cluster: then some errors say that the outcome is not known. */
  readonly delegated?: boolean
  /** Whether half of the writes are changes of rows and names. @default false */
  readonly changes?: boolean
}

/** Runs writes one after the other until the time is over. */
export async function runWritingClient(options: WritingClientOptions): Promise<WriteOutcome[]> {
  const { random, name } = options
  const connection = new Connection(options.name, options.access)
  const drawer = options.changes ? new ChangeDrawer(random, ownerOf(name)) : undefined
  const outcomes: WriteOutcome[] = []
  /** Statements that the client left, and that may not have ended. */
  const left = new Set<WriteOutcome>()
  const done = (write: Write['kind'], also: (outcome: WriteOutcome) => boolean) =>
    outcomes.filter((one) => one.write.kind === write && one.end === 'done' && also(one))
  try {
    for (let number = 0; options.now() < options.untilMs || number < 2; number++) {
      const label = `${ownerOf(name)}_${number}`
      const tables = done('create table', ({ write }) => 'table' in write && !isTouched(outcomes, write.table))
      const views = done('create view', ({ write }) => 'view' in write && !isTouched(outcomes, write.view))
      const write: Write =
        drawer && random.chance(0.6)
          ? { kind: 'change', change: drawer.next() }
          : nextWrite(random, label, tables.at(-1)?.write, views.at(-1)?.write)
      const inOrder = needsOrder(write)
      const behaviour = random.pick(inOrder ? KNOWING : BEHAVIOURS)
      const writing = new Writing(options, connection, write, behaviour)
      for (const one of left) {
        if (!inOrder && !changesNames(one.write)) continue
        await writing.after(one)
        left.delete(one)
      }
      const outcome = await writing.run()
      if (outcome.end === 'unknown') left.add(outcome)
      outcomes.push(outcome)
      if (options.pauseMs !== undefined) await sleep(options.pauseMs)
    }
  } finally {
    connection.close()
  }
  return outcomes
}

/**
 * Whether the statement reads what other statements of the client change. The guard of the server orders only changes
 * of one object.
 */
function needsOrder(write: Write): boolean {
  return write.kind === 'change' && (write.change.operation === 'REFRESH' || write.change.operation === 'CREATE VIEW')
}

/** Whether the statement changes which tables exist. Later statements look for tables before the guard orders them. */
function changesNames(write: Write): boolean {
  return write.kind === 'change' && ['CREATE', 'RENAME', 'DROP'].includes(write.change.operation)
}

/** Whether a client has tried to drop the table or view. */
function isTouched(outcomes: readonly WriteOutcome[], name: string): boolean {
  return outcomes.some(
    ({ write }) =>
      (write.kind === 'drop table' && write.table === name) || (write.kind === 'drop view' && write.view === name),
  )
}

function nextWrite(random: Random, label: string, table: Write | undefined, view: Write | undefined): Write {
  const drawn = random.next()
  if (drawn < 0.15 && table && 'table' in table) return { kind: 'drop table', table: table.table }
  if (drawn < 0.25 && view && 'view' in view) return { kind: 'drop view', view: view.view }
  if (drawn < 0.45) return { kind: 'create table', table: `t_${label}`, rows: random.pick(SOURCES)[2] }
  if (drawn < 0.55) return { kind: 'create view', view: `v_${label}` }
  return { kind: 'insert', batch: label, rows: random.chance(0.4) ? 1 : random.pick(SOURCES)[2] }
}

function textOf(write: Write, client: string): string {
  const source = 'rows' in write ? SOURCES.find(([, , rows]) => rows === write.rows) : undefined
  switch (write.kind) {
    case 'insert':
      return source
        ? `INSERT INTO ${LEDGER} SELECT '${write.batch}', ${source[1]} FROM tpch.tiny.${source[0]}`
        : `INSERT INTO ${LEDGER} VALUES ('${write.batch}', 1)`
    case 'create table':
      return `CREATE TABLE ${SCHEMA}.${write.table} AS SELECT ${source![1]} AS n FROM tpch.tiny.${source![0]}`
    case 'drop table':
      return `DROP TABLE ${SCHEMA}.${write.table}`
    case 'create view':
      return `CREATE VIEW ${SCHEMA}.${write.view} AS SELECT count(*) AS n FROM ${LEDGER}`
    case 'drop view':
      return `DROP VIEW ${SCHEMA}.${write.view}`
    case 'change':
      return textOfChange(write.change, ownerOf(client), `${SCHEMA}.`)
  }
}

/** One statement and its client. */
class Writing {
  readonly #options: WritingClientOptions
  readonly #connection: Connection
  readonly #write: Write
  readonly #behaviour: Behaviour
  #id: string | undefined
  /** The update count of the last answer. */
  #count: number | undefined

  constructor(options: WritingClientOptions, connection: Connection, write: Write, behaviour: Behaviour) {
    this.#options = options
    this.#connection = connection
    this.#write = write
    this.#behaviour = behaviour
  }

  /** Waits until a statement that the client left has ended. */
  async after({ id }: WriteOutcome): Promise<void> {
    if (id === undefined) return
    const ask = () => this.#connection.ask(`${this.#options.base}/v1/query/${id}`)
    for (let state = ''; state !== 'FINISHED' && state !== 'FAILED'; await sleep(PAUSE_MS)) {
      const answer = await this.#again('GET', ask, [200, 404, 410], [503])
      state = answer.status === 200 ? (JSON.parse(answer.text) as { readonly state: string }).state : 'FAILED'
    }
  }

  async run(): Promise<WriteOutcome> {
    const { name: client, now } = this.#options
    const fromMs = Math.round(now())
    const base = () => ({ client, behaviour: this.#behaviour, write: this.#write, fromMs, toMs: Math.round(now()) })
    try {
      const [end, why] = await this.#run()
      this.#options.passed('ended')
      const count = this.#count === undefined ? {} : { count: this.#count }
      return { ...base(), ...this.#named(), end, ...count, ...(why === undefined ? {} : { why }) }
    } catch (error) {
      if (!(error instanceof Wrong)) throw error
      return { ...base(), ...this.#named(), end: 'unknown', why: error.message, wrong: true }
    }
  }

  #named(): { readonly id?: string } {
    return this.#id === undefined ? {} : { id: this.#id }
  }

  async #run(): Promise<[WriteEnd, string?]> {
    const { random } = this.#options
    const behaviour = this.#behaviour
    // The answer gets lost: published clients send the POST again, and the first statement must not run.
    if (behaviour === 'post twice') await this.#post(0).catch(() => {})
    let last = parse(await this.#again('POST', () => this.#post(), [200], [429, 503]))
    this.#id = last.id
    this.#options.passed('first answer')
    if (behaviour === 'leave after post') return ['not done', 'nobody followed']
    for (let gets = 0, uri = last.nextUri; uri !== undefined; uri = last.nextUri, gets++) {
      const at = uri
      if (behaviour === 'leave' && gets > 0) return ['unknown']
      if (behaviour === 'cut' && random.chance(0.5)) {
        await this.#connection.ask(at, { cutAfterBytes: random.pick([0, 1, 500]) }).catch(() => {})
      }
      if (behaviour === 'cancel' && gets === random.whole(0, 1)) {
        this.#options.passed('canceling')
        const send = () => this.#connection.ask(at, { method: 'DELETE' })
        const [answer] = await Promise.all([this.#get(at), this.#again('DELETE', send, [204], [503])])
        last = parse(answer)
        continue
      }
      const answers = behaviour === 'repeat' ? [this.#get(at), this.#get(at)] : [this.#get(at)]
      const reported = (await Promise.all(answers)).map(parse)
      last = reported.at(-1)!
      if (behaviour === 'repeat' && last.nextUri === undefined) await this.#sameEnd(at, last)
    }
    if (last.error) {
      const { errorName, message } = last.error
      const allowed = this.#write.kind === 'change' ? refusals : NONE
      if (errorName !== 'USER_CANCELED' && !cleanErrors.has(errorName) && !allowed.has(errorName))
        throw new Wrong(`${errorName}: ${message}`)
      return [this.#options.delegated && isUnknown(last.error) ? 'unknown' : 'not done', errorName]
    }
    this.#checkCount(last)
    return ['done']
  }

  /** Checks the update count in the last answer. */
  #checkCount({ stats, data, ...rest }: StatementJson): void {
    if (stats.state !== 'FINISHED') throw new Wrong(`no nextUri, yet ${stats.state}`)
    const { updateCount, updateType } = rest as { updateCount?: number; updateType?: string }
    this.#count = updateCount
    // The model knows the number of rows that a change changes.
    const isChange = this.#write.kind === 'change'
    const expected = isChange ? updateCount : 'rows' in this.#write ? this.#write.rows : undefined
    if (updateCount !== expected || updateType === undefined || data?.[0]?.[0] !== expected) {
      throw new Wrong(`the client got ${updateType} ${updateCount} ${JSON.stringify(data)} instead of ${expected}`)
    }
  }

  /** Asks for the last answer again: it must have the same end. While a coordinator takes over, states may come first. */
  async #sameEnd(uri: string, end: StatementJson): Promise<void> {
    let again = parse(await this.#get(uri))
    while (again.nextUri !== undefined) again = parse(await this.#get(again.nextUri))
    if (again.error?.errorName !== end.error?.errorName) {
      throw new Wrong(`ended with ${end.error?.errorName ?? 'success'}, asked again: ${JSON.stringify(again)}`)
    }
  }

  #post(cutAfterBytes?: number): Promise<Answer> {
    const asked = this.#connection.ask(`${this.#options.base}/v1/statement`, {
      method: 'POST',
      body: textOf(this.#write, this.#options.name),
      headers: { 'x-trino-client-capabilities': 'PATH,PARAMETRIC_DATETIME' },
      ...(cutAfterBytes === undefined ? {} : { cutAfterBytes }),
    })
    this.#options.passed('posted')
    return asked
  }

  #get(uri: string): Promise<Answer> {
    return this.#again('GET', () => this.#connection.ask(uri), [200], [])
  }

  /** Repeats a request until an answer arrives, as published clients do. */
  async #again(what: string, send: () => Promise<Answer>, good: readonly number[], later: readonly number[]) {
    const { now, patienceMs = PATIENCE_MS } = this.#options
    const until = now() + patienceMs
    for (let why = ''; ; await sleep(PAUSE_MS)) {
      if (now() > until) throw new Wrong(`${what}: no answer in ${patienceMs} ms, last ${why}`)
      try {
        const answer = await send()
        if (good.includes(answer.status)) return answer
        if (!later.includes(answer.status)) throw new Wrong(`${what} answered ${answer.status}: ${answer.text}`)
        why = String(answer.status)
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error
        why = error.message
      }
    }
  }
}

/**
 * Whether a delegated write may have been carried out: its cluster was lost, or the gateway ended the query and then
 * canceled it at the cluster.
 */
function isUnknown({ errorName, message }: NonNullable<StatementJson['error']>): boolean {
  return message.includes('not known whether') || errorName === 'USER_CANCELED' || errorName === 'ABANDONED_QUERY'
}

function parse({ text }: Answer): StatementJson {
  return JSON.parse(text) as StatementJson
}
