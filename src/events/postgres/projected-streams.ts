import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { keyNameOf, toProjected, type StoredEncoding } from '../envelope.ts'
import {
  beginning,
  checkpointFromJson,
  hasEventsOf,
  LogUnavailable,
  type Checkpoint,
  type Recorded,
} from '../event-log.ts'
import type { StreamHead } from '../record-store.ts'
import { READ_MODEL_SCHEMA } from './migrate.ts'

export interface ProjectedStreamsOptions {
  /** Name of the projection that fills `query_events`. @default 'readmodels' */
  readonly projection?: string
  readonly schema?: string
  /** Resolves when the projection's runner in this process has passed a checkpoint. Absent: the table is polled. */
  readonly whenReached?: (target: Checkpoint) => Promise<void>
  /** How long to wait for a projection that is behind, in milliseconds. @default 5000 */
  readonly waitMs?: number
}

const POLL_MS = 20
const WAIT_MS = 5_000
const CHUNK = 500

/** Streams as the projection `query_events` has them, for a log without an index by stream. */
export class ProjectedStreams {
  readonly #pool: pg.Pool
  readonly #projection: string
  readonly #schema: string
  readonly #whenReached: ((target: Checkpoint) => Promise<void>) | undefined
  readonly #waitMs: number

  constructor(pool: pg.Pool, options: ProjectedStreamsOptions = {}) {
    this.#pool = pool
    this.#projection = options.projection ?? 'readmodels'
    this.#schema = options.schema ?? READ_MODEL_SCHEMA
    this.#whenReached = options.whenReached
    this.#waitMs = options.waitMs ?? WAIT_MS
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    const { rows } = await this.#ask<{ checkpoint: string }>({
      name: 'projected-checkpoint',
      text: `select checkpoint from ${this.#schema}.checkpoints where name = $1 order by version desc limit 1`,
      values: [this.#projection],
    })
    return rows[0] && checkpointFromJson(rows[0].checkpoint)
  }

  /**
   * Resolves when the read models have all events below a checkpoint.
   * @throws LogUnavailable when they are too far behind
   */
  async reached(target: Checkpoint): Promise<void> {
    if (hasEventsOf(beginning(target.at.length), target)) return
    if (this.#whenReached) return this.#whenReached(target)
    const until = performance.now() + this.#waitMs
    for (;;) {
      const checkpoint = await this.checkpoint()
      if (checkpoint && hasEventsOf(checkpoint, target)) return
      if (performance.now() >= until)
        throw new LogUnavailable('The read models, which find streams of the event log, are behind the log')
      await sleep(POLL_MS)
    }
  }

  async head(stream: string): Promise<{ head: StreamHead; checkpoint: Checkpoint | undefined }> {
    const { rows } = await this.#ask<{ checkpoint: string | null; sequence: string | null; hash: string | null }>({
      name: 'projected-head',
      text: `select checkpoint, sequence, hash from (select) always
        left join lateral (
          select checkpoint from ${this.#schema}.checkpoints where name = $1 order by version desc limit 1
        ) progress on true
        left join lateral (
          select sequence, hash from ${this.#schema}.query_events where stream = $2 order by sequence desc limit 1
        ) last on true`,
      values: [this.#projection, stream],
    })
    const { checkpoint, sequence, hash } = rows[0]!
    return {
      head: sequence === null || hash === null ? { sequence: 0, hash: '' } : { sequence: Number(sequence), hash },
      checkpoint: checkpoint === null ? undefined : checkpointFromJson(checkpoint),
    }
  }

  async *read(stream: string, after: number): AsyncIterable<Recorded> {
    for (let from = after; ;) {
      const { rows } = await this.#ask<EventRow>({
        name: 'projected-stream',
        text: `select * from ${this.#schema}.query_events where stream = $1 and sequence > $2 order by sequence limit $3`,
        values: [stream, from, CHUNK],
      })
      for (const row of rows) {
        from = Number(row.sequence)
        yield fromRow(stream, row)
      }
      if (rows.length < CHUNK) return
    }
  }

  async keysOf(stream: string, sequences: readonly number[]): Promise<string[]> {
    const { rows } = await this.#ask<{ enc: string }>({
      name: 'projected-keys',
      text: `select distinct enc from ${this.#schema}.query_events
        where stream = $1 and (forgotten or sequence = any($2))`,
      values: [stream, sequences],
    })
    return rows.map((row) => keyNameOf(row.enc)).filter((key) => key !== undefined)
  }

  async #ask<Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
    try {
      return await this.#pool.query<Row>(query)
    } catch (cause) {
      throw new LogUnavailable(`The read models do not answer: ${(cause as Error).message}`, { cause })
    }
  }
}

interface EventRow {
  position: string
  partition: number
  sequence: string
  epoch: string
  type: string
  v: number
  time: Date
  traceparent: string | null
  prevhash: string
  hash: string
  digest: string
  enc: StoredEncoding
  data: string
  forgotten: boolean
}

function fromRow(stream: string, row: EventRow): Recorded {
  const { type, v, prevhash, hash, digest, enc, data } = row
  const envelope = {
    sequence: Number(row.sequence),
    epoch: Number(row.epoch),
    type,
    v,
    time: row.time.toISOString(),
    ...(row.traceparent === null ? {} : { traceparent: row.traceparent }),
    prevhash,
    hash,
    digest,
    enc,
    data,
    ...(row.forgotten ? { forgotten: true as const } : {}),
  }
  return toProjected(stream, envelope, { partition: row.partition, offset: BigInt(row.position) })
}
