import pg from 'pg'
import { beginning, checkpointFromJson, checkpointToJson, type Checkpoint } from './event-log.ts'
import { eventKey, type DeadLetter, type QueryRows, type TableWrite } from './projection.ts'
import { storableText } from './storable-text.ts'
import { sqlStateOf } from './postgres/database-error.ts'
import { QuipuError } from '../shared/quipu-error.ts'

export interface StoredProgress {
  readonly checkpoint: Checkpoint
  readonly revision: bigint
  /** Streams with an open dead letter. */
  readonly parked: ReadonlySet<string>
  /** Events that failed and wait to be repaired. */
  readonly deadLetters: number
}

/** A statement that wrote rows; times are monotonic milliseconds. */
export interface StatementReport {
  readonly text: string
  readonly startMs: number
  readonly endMs: number
}

const CONNECT_MS = 5_000
const STATEMENT_MS = 60_000
/** A process that is stopped within a commit must not block the checkpoint for its successor. */
const IDLE_IN_COMMIT_MS = 3_000

/** Another process moved the checkpoint: another runner, a rebuild, a repair. */
export class CheckpointMoved extends QuipuError {
  readonly retry = 'anew'
}

/**
 * The database side of one projection: rows, dead letters and checkpoint in one transaction, on a connection of its
 * own. Commits do not wait for the disk: a crash loses rows and checkpoint together, and the log still has the events.
 */
export class ProjectionStore {
  readonly #name: string
  readonly #version: number
  readonly #client: pg.Client
  #broken: Error | undefined
  #reported: StatementReport[] = []

  private constructor(name: string, version: number, client: pg.Client) {
    this.#name = name
    this.#version = version
    this.#client = client
    client.on('error', (error) => (this.#broken = error))
  }

  /** Connects. @param schema of the projection's tables, and of `checkpoints` and `dead_letters` */
  static async connect(
    database: pg.ClientConfig,
    schema: string,
    projection: { readonly name: string; readonly version: number },
  ): Promise<ProjectionStore> {
    const client = new pg.Client({
      ...database,
      application_name: 'quipu projection',
      // A server that vanishes silently must not block the projection for ever.
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: STATEMENT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_COMMIT_MS,
      keepAlive: true,
      options: `${database.options ?? ''} -c search_path=${schema},public -c synchronous_commit=off`.trim(),
    })
    const store = new ProjectionStore(projection.name, projection.version, client)
    await client.connect()
    return store
  }

  readonly query: QueryRows = async (text, values) =>
    (await this.#client.query<Record<string, unknown>>(text, [...values])).rows

  /** Reads how far the projection got; makes its checkpoint row when there is none. */
  async load(): Promise<StoredProgress> {
    const { rows } = await this.#client.query<{ checkpoint: string; revision: string }>(
      'select checkpoint, revision from checkpoints where name = $1 and version = $2',
      [this.#name, this.#version],
    )
    const dead = await this.#client.query<{ stream: string; count: string }>(
      `select stream, count(*) filter (where kind = 'failed') as count from dead_letters
       where projection = $1 and resolved_at is null group by stream`,
      [this.#name],
    )
    const parked = new Set(dead.rows.map((row) => row.stream))
    const deadLetters = dead.rows.reduce((sum, row) => sum + Number(row.count), 0)
    const row = rows[0]
    if (row)
      return { checkpoint: checkpointFromJson(row.checkpoint), revision: BigInt(row.revision), parked, deadLetters }
    const checkpoint = beginning()
    await this.#client.query(
      `insert into checkpoints (name, version, revision, checkpoint, events, updated_at) values ($1, $2, 0, $3, 0, now())
       on conflict do nothing`,
      [this.#name, this.#version, checkpointToJson(checkpoint)],
    )
    return { checkpoint, revision: 0n, parked, deadLetters }
  }

  /** Sets the checkpoint to the beginning for the events of another log. Rows stay. */
  async beginLog(): Promise<void> {
    await this.#client.query(
      'update checkpoints set checkpoint = $3, events = 0, revision = revision + 1 where name = $1 and version = $2',
      [this.#name, this.#version, checkpointToJson(beginning())],
    )
  }

  /** Statements of the last commit that wrote rows. */
  get reported(): readonly StatementReport[] {
    return this.#reported
  }

  /**
   * Writes a batch.
   * @returns the new revision
   * @throws CheckpointMoved nothing was written
   */
  async commit(
    batch: { readonly writes: readonly TableWrite[]; readonly dead: readonly DeadLetter[]; readonly next: Checkpoint },
    revision: bigint,
  ): Promise<bigint> {
    if (this.#broken) throw this.#broken
    const client = this.#client
    await client.query('begin')
    try {
      // This statement is the first, so that the later of two runners waits here and then writes nothing.
      const moved = await client.query({
        name: 'checkpoint',
        text: `update checkpoints set checkpoint = $3, events = $4, revision = revision + 1, updated_at = now()
               where name = $1 and version = $2 and revision = $5`,
        values: [this.#name, this.#version, checkpointToJson(batch.next), eventsBelow(batch.next), String(revision)],
      })
      if (moved.rowCount !== 1) throw new CheckpointMoved(`Checkpoint ${this.#name} is not at revision ${revision}`)
      this.#reported = []
      for (const write of batch.writes) {
        const start = performance.now()
        await client.query({ ...write, values: [...write.values] })
        this.#reported.push({ text: write.text, startMs: start, endMs: performance.now() })
      }
      if (batch.dead.length > 0) await this.#writeDeadLetters(batch.dead)
      await client.query('commit')
      return revision + 1n
    } catch (error) {
      await client.query('rollback').catch(() => undefined)
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined)
  }

  async #writeDeadLetters(dead: readonly DeadLetter[]): Promise<void> {
    const byKey = new Map(dead.map((letter) => [eventKey(letter.event), letter]))
    for (const letter of byKey.values()) {
      const { event } = letter
      const error = letter.kind === 'failed' ? letter.error : undefined
      await this.#client.query({
        name: 'dead-letter',
        text: `insert into dead_letters (projection, stream, sequence, kind, "position", "partition", type, v, "time",
                 sqlstate, error_message, data)
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
               on conflict (projection, stream, sequence) do nothing`,
        values: [
          this.#name,
          storableText(event.stream),
          event.sequence,
          letter.kind,
          String(event.position.offset),
          event.position.partition,
          storableText(event.type),
          event.v,
          event.time,
          sqlStateOf(error) ?? null,
          error === undefined
            ? null
            : storableText(error instanceof Error ? error.message : String(error)).slice(0, 4000),
          storableText(event.stored),
        ],
      })
    }
  }
}

/** Valid events below a checkpoint, over all log partitions. */
export function eventsBelow(checkpoint: Checkpoint): number {
  return checkpoint.at.reduce((sum, position) => sum + position.state.count, 0)
}
