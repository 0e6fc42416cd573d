import { howToRetry } from '../../../shared/quipu-error.ts'
import { currentStatement } from './current-statement.ts'
import { NotWanted } from './read-queue.ts'

/** The part of the metadata of clusters that a value is about. The fields that are absent do not restrict it. */
export interface MetadataScope {
  /** The user that the cluster shows it to; absent: the user of this gateway. */
  readonly user?: string
  /** The name of a cluster, for a value that is about one cluster and not about its group. */
  readonly cluster?: string
  readonly catalog?: string
  readonly schema?: string
  readonly table?: string
}

/** The part that a statement may have changed: a schema, a catalog, or everything. */
export type ChangedScope = Pick<MetadataScope, 'catalog' | 'schema'>

/** @param unwanted aborts when nothing needs the value any more */
type ReadValue<T> = (unwanted: AbortSignal) => Promise<T>

/** Values that a cluster gave, one for each scope. */
export interface RecentValues<T> {
  /**
   * Gives the last value while it is fresh (60 s), and else reads a new one. Callers of the same scope share a read. If
   * the cluster does not answer, the last value is given until it is too old. Without such a value the error is thrown
   * again for 5 s before the cluster is asked again.
   * @param read rejects with an error that may be retried if the cluster is away. Its signal aborts when all statements
   * that wait for the value have ended; the read may then reject with NotWanted
   * @throws the error of `read`
   */
  get(scope: MetadataScope, read: ReadValue<T>): Promise<T>
  /**
   * Gives the last value at once, however old it is, and reads a new one in the background when it is not fresh. The
   * caller never waits for the cluster.
   * @returns undefined if there is no value yet
   */
  last(scope: MetadataScope, read: ReadValue<T>): T | undefined
  /** Gives the value while it is fresh, without a read. */
  fresh(scope: MetadataScope): T | undefined
  /** Resolves once the read of this scope has ended; at once if there is none. */
  settled(scope: MetadataScope): Promise<void>
  /** Forgets the values that are about something in a scope. The value of a read that is under way is not kept. */
  drop(changed: ChangedScope): void
}

export interface RecentValuesOptions<T> {
  /** The memory that a value takes without its scope, bytes. */
  readonly weightOf: (value: T) => number
  /** The most bytes of all values together. The value that was read last is kept even if it has more. */
  readonly mostBytes: number
  /** Milliseconds, monotonic. */
  readonly now: () => number
  /**
   * The age until which a value is given while the cluster does not answer, milliseconds.
   * @default 600_000
   */
  readonly staleMs?: number
  /** Whether a failed read is not repeated for 5 s. Absent: each failed read is remembered. */
  readonly isRemembered?: (error: unknown) => boolean
}

const FRESH_MS = 60_000
const STALE_MS = 600_000
/** After a failed read its outcome is given for this time, so that not every statement waits for the cluster. */
const ASK_AGAIN_MS = 5_000
const MOST_FAILURES = 1_000
/** The greatest length of the names in a failure that is remembered, characters. */
const MOST_FAILURE_KEY = 1_000
/** The memory that each value takes besides its texts, bytes. */
const ENTRY_BYTES = 300

interface Entry<T> {
  readonly scope: MetadataScope
  readonly value: T
  readonly weight: number
  readonly readAt: number
  readonly freshUntil: number
}

/** A read that is under way. */
interface Read {
  readonly scope: MetadataScope
  /** Whether `drop` was called after the read began: its value may be older than the change, and is not kept. */
  dropped: boolean
  /** How many callers wait for the value, without the statements that have ended. */
  waiting: number
  readonly unwanted: AbortController
}

interface StartedRead<T> {
  readonly run: Read
  readonly value: Promise<T>
}

interface Failure {
  readonly scope: MetadataScope
  readonly error: unknown
  readonly until: number
}

export function createRecentValues<T>(options: RecentValuesOptions<T>): RecentValues<T> {
  return new KeptValues(options)
}

class KeptValues<T> implements RecentValues<T> {
  readonly #options: Required<RecentValuesOptions<T>>
  /** In the order of their last use: the first ones are removed when there is no room. */
  readonly #entries = new Map<string, Entry<T>>()
  readonly #reads = new Map<string, StartedRead<T>>()
  readonly #failures = new Map<string, Failure>()
  /** The memory of all entries, bytes. */
  #weight = 0
  #sweptAt: number

  constructor(options: RecentValuesOptions<T>) {
    const { staleMs = STALE_MS, isRemembered = () => true } = options
    this.#options = { ...options, staleMs, isRemembered }
    this.#sweptAt = options.now()
  }

  async get(scope: MetadataScope, read: ReadValue<T>): Promise<T> {
    const key = keyOf(scope)
    const statement = currentStatement()
    for (;;) {
      const known = this.#freshAt(key)
      if (known !== undefined) return known
      const running = this.#reads.get(key)
      const failure = running ? undefined : this.#failureOf(key)
      if (failure) throw failure.error
      try {
        return await valueFor(statement, running ?? this.#start(key, scope, read))
      } catch (error) {
        // All statements that waited for this read had ended. This statement needs a new read.
        if (!(error instanceof NotWanted) || statement?.aborted) throw error
      }
    }
  }

  last(scope: MetadataScope, read: ReadValue<T>): T | undefined {
    const key = keyOf(scope)
    // The caller learns from `settled` that the read has ended.
    if (this.#freshAt(key) === undefined && !this.#reads.has(key) && !this.#failureOf(key))
      this.#start(key, scope, read).value.catch(() => {})
    return this.#entries.get(key)?.value
  }

  fresh(scope: MetadataScope): T | undefined {
    return this.#freshAt(keyOf(scope))
  }

  async settled(scope: MetadataScope): Promise<void> {
    await this.#reads.get(keyOf(scope))?.value.catch(() => {})
  }

  drop(changed: ChangedScope): void {
    for (const [key, { scope }] of this.#entries) if (isAbout(scope, changed)) this.#remove(key)
    for (const [key, { scope }] of this.#failures) if (isAbout(scope, changed)) this.#failures.delete(key)
    for (const [key, { run }] of this.#reads) {
      if (!isAbout(run.scope, changed)) continue
      run.dropped = true
      this.#reads.delete(key)
    }
  }

  #remove(key: string): void {
    this.#weight -= this.#entries.get(key)?.weight ?? 0
    this.#entries.delete(key)
  }

  /** Removes the values that are too old to be given. */
  #sweep(): void {
    const now = this.#options.now()
    if (now - this.#sweptAt < FRESH_MS) return
    this.#sweptAt = now
    for (const [key, { readAt }] of this.#entries) if (now - readAt >= this.#options.staleMs) this.#remove(key)
  }

  #put(key: string, entry: Entry<T>): void {
    this.#remove(key)
    this.#sweep()
    this.#entries.set(key, entry)
    this.#weight += entry.weight
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.#options.mostBytes || oldest === key) break
      this.#remove(oldest)
    }
  }

  async #finish(key: string, run: Read, read: ReadValue<T>): Promise<T> {
    const { now, staleMs, weightOf } = this.#options
    const before = this.#entries.get(key)
    try {
      const value = await read(run.unwanted.signal)
      const readAt = now()
      const weight = ENTRY_BYTES + 2 * key.length + weightOf(value)
      if (!run.dropped) this.#put(key, { scope: run.scope, value, weight, readAt, freshUntil: readAt + FRESH_MS })
      return value
    } catch (error) {
      if (error instanceof NotWanted) throw error
      const holds = before !== undefined && now() - before.readAt < staleMs
      if (!holds || howToRetry(error) === 'never') {
        if (!run.dropped) {
          this.#remove(key)
          this.#remember(key, run.scope, error)
        }
        throw error
      }
      if (!run.dropped) this.#put(key, { ...before, freshUntil: now() + ASK_AGAIN_MS })
      return before.value
    }
  }

  #remember(key: string, scope: MetadataScope, error: unknown): void {
    if (!this.#options.isRemembered(error) || key.length > MOST_FAILURE_KEY) return
    if (this.#failures.size >= MOST_FAILURES) this.#failures.clear()
    this.#failures.set(key, { scope, error, until: this.#options.now() + ASK_AGAIN_MS })
  }

  /** The remembered failure of a read. */
  #failureOf(key: string): Failure | undefined {
    const failure = this.#failures.get(key)
    if (!failure || this.#options.now() < failure.until) return failure
    this.#failures.delete(key)
    return undefined
  }

  #freshAt(key: string): T | undefined {
    const known = this.#entries.get(key)
    if (!known || this.#options.now() >= known.freshUntil) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, known)
    return known.value
  }

  #start(key: string, scope: MetadataScope, read: ReadValue<T>): StartedRead<T> {
    const run: Read = { scope, dropped: false, waiting: 0, unwanted: new AbortController() }
    const value = this.#finish(key, run, read).finally(() => {
      if (!run.dropped) this.#reads.delete(key)
    })
    const started = { run, value }
    this.#reads.set(key, started)
    return started
  }
}

/** Waits for a read, until a statement ends. */
async function valueFor<T>(statement: AbortSignal | undefined, { run, value }: StartedRead<T>): Promise<T> {
  const leave = (): void => {
    run.waiting--
    if (run.waiting === 0) run.unwanted.abort()
  }
  run.waiting++
  if (statement?.aborted) leave()
  else statement?.addEventListener('abort', leave)
  try {
    return await value
  } finally {
    statement?.removeEventListener('abort', leave)
  }
}

function keyOf({ user, cluster, catalog, schema, table }: MetadataScope): string {
  return JSON.stringify([user, cluster, catalog, schema, table])
}

/** Whether a value may be about something that was changed. A list of a whole catalog is about each of its schemas. */
function isAbout(scope: MetadataScope, changed: ChangedScope): boolean {
  return overlaps(scope.catalog, changed.catalog) && overlaps(scope.schema, changed.schema)
}

function overlaps(a: string | undefined, b: string | undefined): boolean {
  return a === undefined || b === undefined || a === b
}
