import { z } from 'zod'
import type { Administrator } from '../coordinator/system/forget-query.ts'
import { decryptData, encryptData } from '../events/data-keys/encrypt.ts'
import { checkpointFromJson, checkpointToJson, type Checkpoint } from '../events/event-log.ts'
import type { QueryRows } from '../events/projection.ts'
import { QuipuError } from '../shared/quipu-error.ts'
import { subjectHash, subjectKind, subjectSchema, type Subject } from './subject.ts'

/** The erasure, or its preview, that a user asks for. */
export interface ErasureOrder {
  readonly subject: Subject
  /** Whether queries that only mention a user, and recorded texts of rule files, are erased too. */
  readonly mentions: boolean
  readonly reason?: string
}

/** A request for an erasure without its subject, as it may be shown and recorded. */
export const erasureRequestSchema = z.object({
  kind: z.enum(['user', 'value']),
  subject: z.string(),
  mentions: z.boolean(),
  reason: z.string().optional(),
  by: z.string(),
  originalUser: z.string().optional(),
  remoteAddress: z.string().optional(),
})
export type ErasureRequest = Readonly<z.infer<typeof erasureRequestSchema>>

const remainderSchema = z.object({
  location: z.string(),
  found: z.number().int().min(0),
  until: z.string().optional(),
  why: z.string().optional(),
})
/** The rest of a subject in a table, a folder or a topic. `until`: when it leaves by itself, ISO UTC. */
export type Remainder = Readonly<z.infer<typeof remainderSchema>>

export const erasureResultSchema = z.object({
  queries: z.number().int().min(0),
  records: z.number().int().min(0),
  waiting: z.array(z.string()),
  searched: z.number().int().min(0),
  remains: z.array(remainderSchema),
})
/**
 * The outcome of an erasure. It removed the data of a number of queries and other records. `waiting` lists found queries
 * that had not ended. `searched` counts the locations of the search afterwards; `remains` has those that still contain
 * the subject.
 */
export type ErasureResult = Readonly<z.infer<typeof erasureResultSchema>>

/** How far the logs are searched: the oldest log has number 0. */
export interface SearchProgress {
  readonly log: number
  readonly next: Checkpoint
}

/** An erasure as the table has it. */
export interface StoredErasure {
  readonly id: string
  readonly requestedAt: string
  readonly endedAt: string | undefined
  readonly request: ErasureRequest
  readonly progress: SearchProgress | undefined
  readonly working: readonly string[]
  readonly waiting: readonly string[]
  readonly result: ErasureResult | undefined
}

/** The subject cannot be decrypted: the cluster's secret has changed since the request. */
export class SubjectUnreadable extends QuipuError {
  readonly retry = 'never'
}

const rowSchema = z.object({
  id: z.string(),
  requested_at: z.date(),
  ended_at: z.date().nullable(),
  request: erasureRequestSchema,
  progress: z.object({ log: z.number(), next: z.string() }).nullable(),
  working: z.array(z.string()),
  waiting: z.array(z.string()),
  result: erasureResultSchema.nullable(),
})

const COLUMNS = 'id, requested_at, ended_at, request, progress, working, waiting, result'

/** Keys of 32 bytes each. */
export interface ErasureKeys {
  /** Encrypts subjects. */
  readonly subjects: Buffer
  /** Key of the hashes of subjects. */
  readonly hashes: Buffer
}

/** Stores erasures that are under way, so that another process can continue them. */
export class ErasureStore {
  readonly #query: QueryRows
  readonly #keys: ErasureKeys

  constructor(query: QueryRows, keys: ErasureKeys) {
    this.#query = query
    this.#keys = keys
  }

  async add(id: string, { subject, ...order }: ErasureOrder, administrator: Administrator): Promise<void> {
    const request: ErasureRequest = {
      kind: subjectKind(subject),
      subject: subjectHash(subject, this.#keys.hashes),
      ...order,
      ...administrator,
    }
    await this.#query('insert into quipu_log.erasures (id, sealed, request) values ($1, $2, $3)', [
      id,
      encryptData(this.#keys.subjects, id, JSON.stringify(subject)),
      JSON.stringify(request),
    ])
  }

  async get(id: string): Promise<StoredErasure | undefined> {
    const [row] = await this.#query(`select ${COLUMNS} from quipu_log.erasures where id = $1`, [id])
    return row && storedOf(row)
  }

  /** The erasures that have not ended, the oldest first. */
  async open(): Promise<readonly StoredErasure[]> {
    const rows = await this.#query(
      `select ${COLUMNS} from quipu_log.erasures where ended_at is null order by requested_at, id`,
      [],
    )
    return rows.map(storedOf)
  }

  /** @throws SubjectUnreadable */
  async subjectOf(id: string): Promise<Subject> {
    const [row] = await this.#query('select sealed from quipu_log.erasures where id = $1', [id])
    const opened = typeof row?.['sealed'] === 'string' ? decryptData(this.#keys.subjects, id, row['sealed']) : undefined
    if (!opened)
      throw new SubjectUnreadable(
        `Erasure ${id} cannot continue, because the cluster's secret has changed: request it again`,
      )
    return subjectSchema.parse(JSON.parse(opened.toString()))
  }

  /** Stores which streams are being forgotten, before anything of them is removed. */
  async begin(id: string, working: readonly string[]): Promise<void> {
    await this.#query('update quipu_log.erasures set working = $2 where id = $1', [id, JSON.stringify(working)])
  }

  /** Stores that everything below a position is done. */
  async reach(id: string, { log, next }: SearchProgress, waiting: readonly string[]): Promise<void> {
    await this.#query(`update quipu_log.erasures set progress = $2, waiting = $3, working = '[]' where id = $1`, [
      id,
      JSON.stringify({ log, next: checkpointToJson(next) }),
      JSON.stringify(waiting),
    ])
  }

  /** Stores the result and deletes the subject. */
  async end(id: string, result: ErasureResult): Promise<void> {
    await this.#query(
      `update quipu_log.erasures set ended_at = clock_timestamp(), sealed = null, progress = null, working = '[]',
         waiting = $2, result = $3 where id = $1`,
      [id, JSON.stringify(result.waiting), JSON.stringify(result)],
    )
  }
}

function storedOf(row: Record<string, unknown>): StoredErasure {
  const { id, requested_at, ended_at, request, progress, working, waiting, result } = rowSchema.parse(row)
  return {
    id,
    requestedAt: requested_at.toISOString(),
    endedAt: ended_at?.toISOString(),
    request,
    progress: progress ? { log: progress.log, next: checkpointFromJson(progress.next) } : undefined,
    working,
    waiting,
    result: result ?? undefined,
  }
}
