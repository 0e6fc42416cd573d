import { closeSync, constants, mkdirSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import type { DuckDBDataChunk, DuckDBMaterializedResult, DuckDBPreparedStatement, DuckDBResult } from '@duckdb/node-api'
import { inOnePiece } from '../../shared/body-parts.ts'
import { StatementType } from '../../shared/duckdb.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { Connections, StatementConnection } from './engine-connections.ts'
import { answerToFiles } from './file-answers.ts'
import type { EngineMacros } from './engine-macros.ts'
import type { EngineFigures, EngineReply, EngineRequest } from './messages.ts'
import { RunningStatements, type RunningStatement } from './running-statements.ts'
import { copyToFifo, copyToParquet } from './sandbox.ts'
import { answerOfFile, isTextQuestion } from './text-files/answer-text.ts'
import { checkQuery, statementText } from './statement-text.ts'
import { RefusedStatement } from './statement-tokens.ts'
import type { EngineVocabulary, ReadText } from './statement-wall.ts'

type RunRequest = Extract<EngineRequest, { type: 'run' }>
type InspectRequest = Extract<EngineRequest, { type: 'inspect' }>

/** Runs statements on the engine's side; each ends with exactly one `done` or `error`. */
export interface Statements {
  run(request: RunRequest): Promise<void>
  inspect(request: InspectRequest): Promise<void>
  interrupt(id: number): void
  /** Folders that files may be read in: absolute, with a trailing slash. */
  allow(directories: readonly string[]): void
}

/** A text for DuckDB. */
interface Text {
  readonly sql: string
  /** Whether to cache the prepared statement by its text. */
  readonly cache: boolean
  /** Throws when the text may not be run. */
  check(): ReadText
}

interface Outcome {
  readonly rows: number
  readonly overflow: boolean
  readonly body: Buffer
}

const NOTHING = Buffer.alloc(0)
/** For questions of connectors: this process writes their SQL, which calls no macros and no JavaScript. */
const OF_CONNECTORS: ReadText = { scripted: false, macros: new Set(), scans: [] }
/** Statements that end sooner send no `started`: it would cost small ones a tenth of their time. */
const STARTED_AFTER_MS = 50
/** Well before the parent's first check of the time that planning takes. */
const PLANNED_AGAIN_AFTER_MS = 250
/**
 * Errors that rendered statements do not give. A statement that got past the renderer can break its instance for all
 * later statements (logging and profiling into a file that cannot be written), which would fail with these errors.
 */
const SUSPICIOUS = /^(Permission|IO|Invalid Configuration|FATAL|INTERNAL) Error/
/** DuckDB can lose an interrupt that falls between two phases of a statement, so it is repeated. */
const INTERRUPT_AGAIN_MS = 20
const ROW_END = ',\n'
/** The shortest row: the JSON text of an array with one value, and the comma behind it. */
const LEAST_ROW_BYTES = 4

type Send = (reply: EngineReply, body?: Buffer) => void

export interface StatementDeps {
  readonly connections: Connections
  readonly vocabulary: EngineVocabulary
  readonly macros: EngineMacros
  readonly send: Send
}

export function createStatements(deps: StatementDeps): Statements {
  return new ConnectionStatements(deps)
}

class ConnectionStatements implements Statements {
  readonly #connections: Connections
  readonly #vocabulary: EngineVocabulary
  readonly #macros: EngineMacros
  readonly #send: Send
  readonly #running = new RunningStatements()
  #allowed: readonly string[] = []

  constructor({ connections, vocabulary, macros, send }: StatementDeps) {
    this.#connections = connections
    this.#vocabulary = vocabulary
    this.#macros = macros
    this.#send = send
  }

  async run(request: RunRequest): Promise<void> {
    const statement = this.#running.begin(request.id, request.announce)
    const startedAt = Date.now()
    const start = process.hrtime.bigint()
    try {
      if (request.profile !== undefined) rmSync(request.profile, { force: true })
      statement.connection = await this.#connections.take(request.connection, request.profile)
      const outcome = await this.#outcomeOf(statement, request)
      const profile = request.profile === undefined ? NOTHING : takeProfile(request.profile)
      this.#running.end(statement)
      const figures: EngineFigures = {
        rows: outcome.rows,
        overflow: outcome.overflow,
        startedAt,
        wallNanos: Number(process.hrtime.bigint() - start),
        cpuNanos: Math.round(statement.cpuMicros * 1000),
        cpuExact: statement.cpuExact,
        residentBytes: process.memoryUsage.rss(),
        profileBytes: profile.length,
      }
      this.#send(
        { type: 'done', id: request.id, ...figures },
        profile.length > 0 ? Buffer.concat([outcome.body, profile]) : outcome.body,
      )
    } catch (error) {
      if (request.profile !== undefined) rmSync(request.profile, { force: true })
      await this.#fail(statement, error)
    }
  }

  async inspect(request: InspectRequest): Promise<void> {
    const statement = this.#running.begin(request.id, false)
    try {
      const { question } = request
      const rows = isTextQuestion(question)
        ? await answerOfFile(question, this.#allowed)
        : await answerToFiles(question, (sql) => this.#answer(statement, request.connection, sql))
      this.#running.end(statement)
      const figures = { overflow: false, startedAt: 0, wallNanos: 0, cpuNanos: 0, cpuExact: false }
      this.#send(
        { type: 'done', id: request.id, rows: rows.length, ...figures, residentBytes: 0, profileBytes: 0 },
        Buffer.from(JSON.stringify(rows)),
      )
    } catch (error) {
      await this.#fail(statement, error)
    }
  }

  async #answer(statement: RunningStatement, connection: number, sql: string): Promise<readonly unknown[]> {
    statement.connection = await this.#connections.take(connection)
    return this.#prepared(statement, { sql, cache: false, check: () => OF_CONNECTORS }, async (plan) => {
      const reader = await plan.runAndReadAll()
      return reader.getRowObjectsJson()
    })
  }

  allow(directories: readonly string[]): void {
    this.#allowed = directories
  }

  interrupt(id: number): void {
    const statement = this.#running.get(id)
    if (!statement || statement.interrupted) return
    statement.interrupted = true
    const interrupt = (): void => {
      statement.connection?.interrupt()
      // A COPY that waits for room in the FIFO sees no interrupt. If the FIFO has bytes, DuckDB has opened it, so
      // closing the last reader is safe: the COPY ends with a broken pipe. If DuckDB had not opened it yet, its open
      // would block forever.
      if (statement.fifo !== undefined && hasBytes(statement.fifo)) closeFifo(statement)
    }
    interrupt()
    statement.repeat = setInterval(interrupt, INTERRUPT_AGAIN_MS)
  }

  async #fail(statement: RunningStatement, error: unknown): Promise<void> {
    const message = textOf(error)
    const refused = error instanceof RefusedStatement
    const broken = SUSPICIOUS.test(message) && !(await this.#connections.works())
    this.#running.end(statement)
    this.#send({
      type: 'error',
      id: statement.id,
      message,
      ...(broken ? { broken } : {}),
      ...(refused ? { refused } : {}),
    })
  }

  #outcomeOf(statement: RunningStatement, request: RunRequest): Promise<Outcome> {
    const { output } = request
    switch (output.kind) {
      case 'inline':
        return this.#inline(statement, request, output.maxBytes)
      case 'fifo':
        return this.#copy(statement, request, output.path)
      case 'parquet':
        return this.#write(statement, request, output.folder, output.make)
      default:
        return unreachable(output)
    }
  }

  async #inline(statement: RunningStatement, request: RunRequest, maxBytes: number): Promise<Outcome> {
    const text = this.#textOf(request)
    if (request.query.row.kind === 'json' && runsAtOnce(text)) {
      const most = Math.ceil(maxBytes / LEAST_ROW_BYTES) + 1
      return joinAll(await this.#atOnce(statement, text, `${text.sql}\nLIMIT ${most}`), maxBytes)
    }
    return this.#prepared(statement, text, async (plan) => {
      // Anything else could outlive the statement (ATTACH, CREATE MACRO) or break the instance (CALL enable_logging).
      if (plan.statementType !== StatementType.SELECT) throw new Error('Not a SELECT')
      const result = await plan.stream()
      const outcome = await joinStream(result, maxBytes)
      if (outcome.overflow) {
        // Closes the stream, and frees what it holds, now instead of at the connection's next statement.
        statement.connection!.interrupt()
        await result.fetchChunk().catch(() => null)
        return outcome
      }
      // A stream that failed midway looks complete, except for `isStreaming`. Its message is lost, so the statement
      // runs once more, materialised, which throws the error.
      if (result.isStreaming) return outcome
      checkInterrupted(statement)
      return joinAll(await plan.run(), maxBytes)
    })
  }

  async #copy(statement: RunningStatement, request: RunRequest, path: string): Promise<Outcome> {
    // Opened to read and write. Read: the FIFO has a reader whatever the parent does, so DuckDB's open never blocks.
    // Write: the parent's reader sees the end exactly when this is closed, with or without rows.
    const fifo = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    statement.fifo = fifo
    try {
      const text = this.#textOf(request, (sql) => copyToFifo(sql, path))
      const result = await this.#run(statement, text)
      return { rows: result.rowsChanged, overflow: false, body: NOTHING }
    } finally {
      closeFifo(statement)
    }
  }

  async #write(statement: RunningStatement, request: RunRequest, folder: string, make: boolean): Promise<Outcome> {
    if (make) mkdirSync(folder, { mode: 0o770 })
    try {
      return await this.#writeInto(statement, request, folder)
    } catch (error) {
      if (make) rmSync(folder, { recursive: true, force: true })
      throw error
    }
  }

  async #writeInto(statement: RunningStatement, request: RunRequest, folder: string): Promise<Outcome> {
    const text = this.#textOf(request, (sql) => copyToParquet(sql, folder))
    const result = await this.#run(statement, text)
    // The module imports a library that only writes need: with a static import each engine would load it at its start.
    const { fileStats } = await import('./file-stats.ts')
    const files = fileStats(await result.getRowObjectsJson())
    const rows = files.reduce((sum, file) => sum + file.rows, 0)
    return { rows, overflow: false, body: Buffer.from(JSON.stringify(files)) }
  }

  /** @param wrapped makes the SQL to run from the whole statement: a COPY of it */
  #textOf({ query, cache }: RunRequest, wrapped: (sql: string) => string = (sql) => sql): Text {
    let read: ReadText | undefined
    const check = (): ReadText => (read ??= checkQuery(query, this.#vocabulary))
    // A statement without scans that is cached by its text passed the check when it was first run.
    const positions = query.scans.length > 0 ? check().scans : []
    return { sql: wrapped(statementText(query, positions)), cache, check }
  }

  #run(statement: RunningStatement, text: Text): Promise<DuckDBMaterializedResult> {
    return runsAtOnce(text)
      ? this.#atOnce(statement, text, text.sql)
      : this.#prepared(statement, text, (plan) => plan.run())
  }

  /** Plans and runs in one call; sends `started` when it is planned and the rest takes long. */
  async #atOnce(statement: RunningStatement, { check }: Text, sql: string): Promise<DuckDBMaterializedResult> {
    await this.#macros.define(check().macros)
    const connection = statement.connection!
    const stop = this.#sayWhenBegun(statement, connection, sql)
    try {
      checkInterrupted(statement)
      return await connection.run(sql)
    } finally {
      stop()
    }
  }

  /**
   * Sends `started` once the statement is planned. DuckDB reports no progress if a source in one of its pipelines
   * reports none. Therefore the same text is also planned a second time, in parallel: its end shows that the first
   * planning has ended.
   * @returns stops looking
   */
  #sayWhenBegun({ id }: RunningStatement, connection: StatementConnection, sql: string): () => void {
    let over = false
    const stop = (): void => {
      over = true
      clearInterval(look)
      clearTimeout(planAgain)
    }
    const say = (): void => {
      if (over) return
      stop()
      this.#send({ type: 'started', id })
    }
    const look = setInterval(() => {
      if (connection.hasBegun()) say()
    }, STARTED_AFTER_MS)
    // An error ends planning too: the statement itself reports why it could not be planned.
    const planAgain = setTimeout(() => {
      this.#send({ type: 'again', id })
      void this.#connections.plan(sql).then(say, say)
    }, PLANNED_AGAIN_AFTER_MS)
    return stop
  }

  /** Prepares, sends `started` when the rest takes long, and runs `work`. */
  async #prepared<T>(
    statement: RunningStatement,
    { sql, cache, check }: Text,
    work: (prepared: DuckDBPreparedStatement) => Promise<T>,
  ): Promise<T> {
    const connection = statement.connection!
    const plan = await connection.prepare(sql, cache, () => this.#macros.define(check().macros))
    const sayStarted = (): void => this.#send({ type: 'started', id: statement.id })
    let started: NodeJS.Timeout | undefined
    // Sent at once, because a function in JavaScript may block this thread until long after the deadline.
    if (statement.announce) sayStarted()
    else started = setTimeout(sayStarted, STARTED_AFTER_MS)
    try {
      checkInterrupted(statement)
      return await work(plan)
    } finally {
      clearTimeout(started)
      connection.release(plan)
    }
  }
}

/**
 * Whether a statement is planned and run in one call. A cached statement is prepared, so that its plan can be used
 * again. A statement with functions in JavaScript is prepared too: they may block this thread from the first rows on,
 * so `started` has to be sent before these rows.
 * @throws RefusedStatement
 */
function runsAtOnce({ cache, check }: Text): boolean {
  return !cache && !check().scripted
}

function checkInterrupted(statement: RunningStatement): void {
  if (statement.interrupted) throw new Error('INTERRUPT Error: Interrupted!')
}

/** Rows of one VARCHAR column, with `,\n` between rows as in streamed output, up to a number of bytes. */
class JoinedRows {
  readonly #maxBytes: number
  readonly #parts: Buffer[] = []
  #rows = 0
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** @returns whether there is room for more */
  add(chunk: DuckDBDataChunk): boolean {
    const part = Buffer.from((this.#rows > 0 ? ROW_END : '') + chunk.getColumnValues(0).join(ROW_END))
    this.#rows += chunk.rowCount
    this.#bytes += part.length
    this.#parts.push(part)
    return this.#bytes <= this.#maxBytes
  }

  outcome(): Outcome {
    if (this.#bytes > this.#maxBytes) return { rows: 0, overflow: true, body: NOTHING }
    return { rows: this.#rows, overflow: false, body: inOnePiece(this.#parts) }
  }
}

async function joinStream(result: DuckDBResult, maxBytes: number): Promise<Outcome> {
  const joined = new JoinedRows(maxBytes)
  for (;;) {
    const chunk = await result.fetchChunk()
    if (!chunk || chunk.rowCount === 0 || !joined.add(chunk)) return joined.outcome()
  }
}

/** Joins the rows of a materialised result synchronously: no wait between chunks is needed. */
function joinAll(result: DuckDBMaterializedResult, maxBytes: number): Outcome {
  const joined = new JoinedRows(maxBytes)
  const { chunkCount } = result
  for (let index = 0; index < chunkCount && joined.add(result.getChunk(index)); index++);
  return joined.outcome()
}

/**
 * Reads and removes the profile. Some good statements have none: the buffer is then empty. The file holds the
 * statement's text, so it is removed.
 */
function takeProfile(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch {
    return NOTHING
  } finally {
    rmSync(file, { force: true })
  }
}

function closeFifo(statement: RunningStatement): void {
  if (statement.fifo === undefined) return
  closeSync(statement.fifo)
  delete statement.fifo
}

function hasBytes(fifo: number): boolean {
  try {
    return readSync(fifo, Buffer.allocUnsafe(1)) > 0
  } catch {
    // Nothing to read (EAGAIN).
    return false
  }
}

/**
 * The largest message that is kept, characters. A message can hold the value that caused the error; of a longer message
 * both ends are kept.
 */
const MAX_MESSAGE = 256 * 1024

function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  if (text.length <= MAX_MESSAGE) return text
  const half = MAX_MESSAGE / 2
  return `${text.slice(0, half)}…${text.slice(-half)}`
}
