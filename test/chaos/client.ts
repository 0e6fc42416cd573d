import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { StatementJson } from '../support/statement-client.ts'
import { Connection, NoAnswer, type Access, type Answer, type Asked } from './http.ts'
import { cleanErrors, type Behaviour, type Outcome } from './outcome.ts'
import type { EventPoint } from './plan.ts'
import type { Random } from './random.ts'
import { wrongRows, type RightAnswer } from './right-answers.ts'
import { statementMix, statementOf, type StatementName } from './statements.ts'

export interface ClientOptions {
  readonly base: string
  readonly name: string
  readonly random: Random
  readonly right: ReadonlyMap<StatementName, RightAnswer>
  /** Milliseconds since the clients began. */
  readonly now: () => number
  readonly passed: (point: EventPoint) => void
  /** No statement begins after this time. */
  readonly untilMs: number
  /** The credentials for a server that is not open. */
  readonly access?: Access
  /** The longest time for which a client repeats a request; later the statement counts as hanging. @default 45 s */
  readonly patienceMs?: number
  /** How long a client that pauses sends no request. Without it no client pauses. */
  readonly pauseMs?: number
}

const PATIENCE_MS = 45_000
const PAUSE_MS = 50
/** Each client runs at least this many statements, even on a slow machine. */
const LEAST_STATEMENTS = 2

/** The server broke a promise. */
class Wrong extends Error {}

/** Runs statements one after the other and follows each by the protocol, until the time is over. */
export async function runClient(options: ClientOptions): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const connection = new Connection(options.name, options.access)
  const { random } = options
  try {
    while (options.now() < options.untilMs || outcomes.length < LEAST_STATEMENTS) {
      const name = random.pick(statementMix)
      const behaviour = options.pauseMs !== undefined && random.chance(0.08) ? 'pause' : pickBehaviour(random)
      outcomes.push(await new Following(options, connection, name, behaviour).run())
      if (random.chance(0.3)) await sleep(random.whole(0, 80))
    }
  } finally {
    connection.close()
  }
  return outcomes
}

function pickBehaviour(random: Random): Behaviour {
  const drawn = random.next()
  if (drawn < 0.35) return 'follow'
  if (drawn < 0.6) return 'repeat'
  if (drawn < 0.7) return 'slow'
  if (drawn < 0.8) return 'cut'
  if (drawn < 0.88) return 'cancel'
  if (drawn < 0.94) return 'cancel beside'
  return drawn < 0.97 ? 'abandon post' : 'walk away'
}

/** One statement and its client. */
class Following {
  readonly #options: ClientOptions
  readonly #connection: Connection
  readonly #name: StatementName
  readonly #behaviour: Behaviour
  readonly #fromMs: number
  readonly #rows: string[] = []
  /** The hash of the rows of each address. */
  readonly #given = new Map<string, string>()
  readonly #headers = new Map<string, string>()
  #id: string | undefined
  #answers = 0

  constructor(options: ClientOptions, connection: Connection, name: StatementName, behaviour: Behaviour) {
    this.#options = options
    this.#connection = connection
    this.#name = name
    this.#behaviour = behaviour
    this.#fromMs = options.now()
  }

  async run(): Promise<Outcome> {
    const [result, why] = await this.#run().catch((error: unknown): [Outcome['result'], string] => {
      if (error instanceof Wrong) return ['wrong', error.message]
      throw error
    })
    this.#options.passed('ended')
    return {
      name: this.#name,
      client: this.#options.name,
      behaviour: this.#behaviour,
      ...(this.#id === undefined ? {} : { id: this.#id }),
      result,
      ...(why === '' ? {} : { why }),
      fromMs: Math.round(this.#fromMs),
      toMs: Math.round(this.#options.now()),
    }
  }

  async #run(): Promise<[Outcome['result'], string]> {
    const { random } = this.#options
    const behaviour = this.#behaviour
    if (behaviour === 'abandon post') {
      await this.#post({ cutAfterBytes: 0 }).catch(() => {})
      return ['left', '']
    }
    let last = await this.#posted()
    this.#options.passed('first answer')
    const leaveAt = random.whole(0, 4)
    for (let uri = last.nextUri; uri !== undefined; uri = last.nextUri) {
      const leaving = this.#answers > leaveAt
      if (leaving && behaviour === 'walk away') return ['left', '']
      if (leaving && behaviour === 'cancel') return this.#cancel(uri)
      if (leaving && behaviour === 'cancel beside') return this.#cancelBeside(uri)
      if (behaviour === 'pause' && this.#answers === leaveAt) await sleep(this.#options.pauseMs ?? 0)
      if (behaviour === 'slow') await sleep(random.whole(20, 250))
      if (behaviour === 'cut' && random.chance(0.4)) {
        const cutAfterBytes = random.pick([0, 1, 1000, 40_000])
        await this.#connection.ask(uri, { cutAfterBytes }).catch(() => {})
      }
      if (behaviour === 'repeat' && random.chance(0.3)) {
        const [first, second] = await Promise.all([this.#get(uri), this.#get(uri)])
        this.#take(uri, first)
        last = this.#take(uri, second)
      } else {
        last = this.#take(uri, await this.#get(uri))
        if (behaviour === 'repeat' && random.chance(0.3)) last = this.#take(uri, await this.#get(uri))
      }
      if (last.nextUri === undefined && random.chance(0.4)) await this.#sameEnd(uri, last)
    }
    return this.#verdict(last)
  }

  /** Asks for the last answer again: it must have the same end. Answers without its page may come first. */
  async #sameEnd(uri: string, end: StatementJson): Promise<void> {
    let again = this.#take(uri, await this.#get(uri))
    while (again.nextUri !== undefined) again = this.#take(again.nextUri, await this.#get(again.nextUri))
    if (again.error?.errorName !== end.error?.errorName) {
      throw new Wrong(
        `ended with ${end.error?.errorName ?? 'rows'}, asked again: ${JSON.stringify(again).slice(0, 300)}`,
      )
    }
  }

  #verdict({ error, stats }: StatementJson): [Outcome['result'], string] {
    const statement = statementOf(this.#name)
    const right = this.#options.right.get(this.#name)
    if (right) {
      const wrong = wrongRows(this.#rows, right, error === undefined)
      if (wrong !== undefined) return ['wrong', wrong]
    }
    if (error) {
      if (error.errorName === statement.error) return ['right', '']
      const why = `${error.errorName}: ${error.message}`.slice(0, 300)
      return [cleanErrors.has(error.errorName) ? 'clean' : 'wrong', why]
    }
    if (statement.error !== undefined) return ['wrong', `no ${statement.error}`]
    if (stats.state !== 'FINISHED') return ['wrong', `no nextUri, yet ${stats.state}`]
    const [name, value] = statement.header ?? []
    if (name !== undefined && this.#headers.get(name) !== value) {
      return ['wrong', `header ${name} is ${this.#headers.get(name) ?? 'absent'}`]
    }
    return ['right', '']
  }

  async #cancel(uri: string): Promise<[Outcome['result'], string]> {
    this.#options.passed('canceling')
    await this.#delete(uri)
    return this.#afterCancel(uri)
  }

  async #cancelBeside(uri: string): Promise<[Outcome['result'], string]> {
    this.#options.passed('canceling')
    const [answer] = await Promise.all([this.#get(uri), this.#delete(uri)])
    const reported = this.#take(uri, answer)
    if (reported.nextUri === undefined) {
      return reported.error?.errorName === 'USER_CANCELED' ? ['right', ''] : this.#verdict(reported)
    }
    return this.#afterCancel(reported.nextUri)
  }

  /**
   * Checks that a query ends after its cancel was answered. The answer is 204 also while the log is away: the
   * coordinator then continues with the cancel, so the client asks for as long as it waits for an answer.
   */
  async #afterCancel(uri: string): Promise<[Outcome['result'], string]> {
    const { now, patienceMs = PATIENCE_MS } = this.#options
    const until = now() + 2 * patienceMs
    for (let at = uri; now() < until;) {
      const last = this.#take(at, await this.#get(at))
      if (last.nextUri === undefined) {
        return last.error?.errorName === 'USER_CANCELED' ? ['right', ''] : this.#verdict(last)
      }
      at = last.nextUri
      await sleep(PAUSE_MS)
    }
    return ['wrong', 'it goes on after its cancel was answered']
  }

  async #posted(): Promise<StatementJson> {
    const answer = await this.#again('POST', () => this.#post({}), [200], [429, 503])
    this.#answers++
    this.#keepHeaders(answer)
    const first = parse(answer)
    this.#id = first.id
    if (first.data !== undefined || first.error !== undefined)
      throw new Wrong('the answer of a POST has rows or an error')
    return first
  }

  #post(more: Pick<Asked, 'cutAfterBytes'>): Promise<Answer> {
    const asked = this.#connection.ask(`${this.#options.base}/v1/statement`, {
      method: 'POST',
      body: statementOf(this.#name).sql,
      headers: {
        'x-trino-catalog': 'tpch',
        'x-trino-schema': 'tiny',
        'x-trino-client-capabilities': 'PATH,PARAMETRIC_DATETIME,SESSION_AUTHORIZATION',
      },
      ...more,
    })
    this.#options.passed('posted')
    return asked
  }

  async #get(uri: string): Promise<Answer> {
    const answer = await this.#again('GET', () => this.#connection.ask(uri), [200], [])
    this.#answers++
    return answer
  }

  async #delete(uri: string): Promise<void> {
    await this.#again('DELETE', () => this.#connection.ask(uri, { method: 'DELETE' }), [204], [503])
  }

  /** Repeats a request until an answer arrives, as published clients do. An answer with another status is wrong. */
  async #again(
    what: string,
    send: () => Promise<Answer>,
    good: readonly number[],
    later: readonly number[],
  ): Promise<Answer> {
    const { now, patienceMs = PATIENCE_MS } = this.#options
    const until = now() + patienceMs
    for (let why = ''; now() < until; await sleep(PAUSE_MS)) {
      try {
        const answer = await send()
        if (good.includes(answer.status)) return answer
        if (!later.includes(answer.status)) {
          throw new Wrong(`${what} answered ${answer.status}: ${answer.text.slice(0, 200)}`)
        }
        why = String(answer.status)
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error
        why = error.message
      }
      if (now() + PAUSE_MS >= until) throw new Wrong(`${what}: no answer in ${patienceMs} ms, last ${why}`)
    }
    throw new Wrong(`${what}: no answer in ${patienceMs} ms`)
  }

  /** Collects the rows of an answer once, and compares a repeated answer with the first one of its address. */
  #take(uri: string, answer: Answer): StatementJson {
    const json = parse(answer)
    this.#keepHeaders(answer)
    const { now, patienceMs = PATIENCE_MS } = this.#options
    if (now() - this.#fromMs > 2 * patienceMs) throw new Wrong(`not ended: ${json.stats.state}`)
    if (json.id !== this.#id) throw new Wrong(`the answer is of query ${json.id}`)
    if (json.data === undefined || json.data.length === 0) return json
    const rows = json.data.map((row) => JSON.stringify(row))
    const hash = createHash('sha256').update(rows.join('\n')).digest('hex')
    const before = this.#given.get(uri)
    if (before === undefined) {
      this.#options.passed(this.#given.size === 0 ? 'first page' : 'page')
      this.#given.set(uri, hash)
      for (const row of rows) this.#rows.push(row)
    } else if (before !== hash) throw new Wrong(`${uri} gave other rows than before`)
    return json
  }

  #keepHeaders({ headers }: Answer): void {
    for (const [name, value] of Object.entries(headers)) {
      if (typeof value === 'string') this.#headers.set(name, value)
    }
  }
}

function parse({ text }: Answer): StatementJson {
  try {
    return JSON.parse(text) as StatementJson
  } catch {
    throw new Wrong(`an answer that is no JSON: ${text.slice(0, 200)}`)
  }
}
