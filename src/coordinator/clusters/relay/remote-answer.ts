import { z } from 'zod'
import { deferred } from '../../../shared/deferred.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import type { ResponseHeader } from '../../query/session/session-headers.ts'
import { HeadReader, RowsReader } from './answer-parts.ts'
import { CountedBytes, type HoldBytes } from './counted-bytes.ts'
import { countJsonRows } from './json-nesting.ts'
import {
  AnswerNotRead,
  ClusterLost,
  type RemoteAnswer,
  type RemoteError,
  type RemoteHead,
  type RemoteTail,
  type RemoteUri,
} from './relay-port.ts'

/** The most bytes before the rows, and the most bytes after them. */
const MOST_BYTES = 4 * 1024 * 1024
/**
 * So many bytes of the rows are read before an answer is passed on. If the answer breaks off within them, the request
 * is repeated, and the client does not notice.
 */
const READ_AHEAD_BYTES = 64 * 1024

export interface AnswerSource {
  readonly cluster: string
  /** The body. Throws ClusterLost when it breaks off. */
  readonly chunks: AsyncIterator<Buffer>
  /** Drops the rest of the body. A read that is under way then throws AnswerNotRead. */
  readonly close: () => void
  readonly headers: readonly ResponseHeader[]
  /** Whether an id is the id of the query that was asked for. */
  readonly isId: (id: string) => boolean
  /** Counts the members before and after the rows as memory; undefined: they are not counted. */
  readonly hold?: HoldBytes | undefined
}

/**
 * Reads an answer of the statement resource, up to its first rows.
 * @throws ClusterLost; the errors of `hold`
 */
export async function readRemoteAnswer(source: AnswerSource): Promise<RemoteAnswer> {
  const { headers } = source
  const counted = new CountedBytes(source.hold)
  try {
    const reader = new HeadReader()
    const first = await firstOfRows(source, reader, counted)
    if (!first) {
      const whole = parseJson(reader.whole())
      const tail = tailOf(source, whole, { rowsBytes: 0, rows: 0 })
      counted.release()
      return { head: headOf(source, whole), headers, data: undefined, tail: Promise.resolve(tail) }
    }
    const head = headOf(source, parseJson(reader.head()))
    const rows = new RowsOfAnswer(source, { first, counted, headBytes: reader.bytes })
    await rows.readAhead()
    return { head, headers, data: rows, tail: rows.tail }
  } catch (error) {
    counted.release()
    source.close()
    throw error
  }
}

/** The first chunk of the rows, from their `[` on; undefined when the answer ends without rows. */
async function firstOfRows(
  { cluster, chunks }: AnswerSource,
  reader: HeadReader,
  counted: CountedBytes,
): Promise<Buffer | undefined> {
  for (;;) {
    const chunk = await chunks.next()
    if (chunk.done) return undefined
    const rows = reader.take(chunk.value)
    if (reader.bytes > MOST_BYTES)
      throw nonsense(cluster, `it answered with more than ${MOST_BYTES} bytes before the rows`)
    counted.grow(reader.bytes)
    if (rows) return rows
  }
}

/** The beginning of the rows, and the memory of the members before them. */
interface RowsBegun {
  readonly first: Buffer
  readonly counted: CountedBytes
  readonly headBytes: number
}

/** The rows of one answer. They are read from the cluster only as fast as the client takes them. */
class RowsOfAnswer implements AsyncIterable<Buffer> {
  readonly #source: AnswerSource
  readonly #reader = new RowsReader()
  readonly #tail = deferred<RemoteTail>()
  /** Parts of the rows that were read and not passed on. */
  readonly #ahead: Buffer[] = []
  readonly #begun: RowsBegun
  #bytes = 0
  #ended = false
  /** Whether parts of the rows were passed on. */
  #isPassedOn = false

  constructor(source: AnswerSource, begun: RowsBegun) {
    this.#source = source
    this.#begun = begun
    const release = (): void => begun.counted.release()
    this.#tail.promise.then(release, release)
    this.#take(begun.first)
  }

  get tail(): Promise<RemoteTail> {
    return this.#tail.promise
  }

  async readAhead(): Promise<void> {
    while (!this.#ended && this.#bytes < READ_AHEAD_BYTES) await this.#readOne()
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer> {
    return {
      next: async () => {
        try {
          while (this.#ahead.length === 0 && !this.#ended) await this.#readOne()
        } catch (error) {
          this.#tail.reject(error)
          throw error
        }
        this.#isPassedOn = true
        const value = this.#ahead.shift()
        return value ? { done: false, value } : { done: true, value: undefined }
      },
      return: async () => {
        this.#tail.reject(new AnswerNotRead(this.#source.cluster))
        this.#source.close()
        return { done: true, value: undefined }
      },
    }
  }

  async #readOne(): Promise<void> {
    const chunk = await this.#source.chunks.next()
    if (!chunk.done) return this.#take(chunk.value)
    this.#ended = true
    const tail = this.#reader.tail()
    const size = { rowsBytes: this.#bytes, ...(!this.#isPassedOn && { rows: countJsonRows(this.#ahead) }) }
    this.#tail.resolve(tailOf(this.#source, tail === undefined ? undefined : parseJson(tail), size))
  }

  #take(chunk: Buffer): void {
    for (const part of this.#reader.take(chunk)) {
      this.#ahead.push(part)
      this.#bytes += part.length
    }
    if (this.#reader.heldBytes > MOST_BYTES)
      throw nonsense(this.#source.cluster, `it answered with more than ${MOST_BYTES} bytes behind the rows`)
    this.#begun.counted.grow(this.#begun.headBytes + this.#reader.heldBytes)
  }
}

const columnSchema = z.object({ name: z.string(), type: z.string(), typeSignature: z.unknown().optional() })
const headSchema = z.object({
  id: z.string(),
  nextUri: z.string().optional(),
  partialCancelUri: z.string().optional(),
  columns: z.array(columnSchema).nullish(),
  // Rows are an array and never get here: any other value than null is an error.
  data: z.null().optional(),
})
const locationSchema = z.object({ lineNumber: z.int(), columnNumber: z.int() })
const errorSchema = z.object({
  message: z.string().nullish(),
  errorCode: z.int(),
  errorName: z.string(),
  errorType: z.string(),
  errorLocation: locationSchema.nullish(),
  failureInfo: z.unknown().optional(),
})
const tailSchema = z.object({
  stats: z.record(z.string(), z.unknown()),
  error: errorSchema.nullish(),
  warnings: z.array(z.unknown()).nullish(),
  updateType: z.string().nullish(),
  updateCount: z.number().nullish(),
})

function headOf({ cluster, isId }: AnswerSource, parsed: unknown): RemoteHead {
  const { success, data } = headSchema.safeParse(parsed)
  if (!success) throw nonsense(cluster, 'its answer is no result of a statement')
  const { id, nextUri, partialCancelUri, columns } = data
  if (!isId(id)) throw nonsense(cluster, 'it answered about another query')
  return {
    id,
    ...(nextUri === undefined ? {} : { nextUri: remoteUri(cluster, nextUri, id) }),
    ...(partialCancelUri === undefined ? {} : { partialCancelUri: remoteUri(cluster, partialCancelUri, id) }),
    ...(columns ? { columns } : {}),
  }
}

function tailOf({ cluster }: AnswerSource, parsed: unknown, size: Pick<RemoteTail, 'rowsBytes' | 'rows'>): RemoteTail {
  const { success, data } = tailSchema.safeParse(parsed)
  if (!success) throw nonsense(cluster, 'its answer has no figures at its end')
  const { stats, error, warnings, updateType, updateCount } = data
  return {
    stats,
    ...(error ? { error: remoteError(error) } : {}),
    warnings: warnings ?? [],
    ...(typeof updateType !== 'string' ? {} : { updateType }),
    ...(typeof updateCount !== 'number' ? {} : { updateCount }),
    ...size,
  }
}

/**
 * The path and query of an address in an answer. The host in the address is not used: a cluster takes it from the
 * request.
 * @throws ClusterLost `nonsense` when it is no address of the query `id`
 */
export function remoteUri(cluster: string, text: string, id: string): RemoteUri {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || !url.pathname.split(/[/.]/).includes(id))
    throw nonsense(cluster, 'an address in its answer is not one of the query')
  return (url.pathname + url.search) as RemoteUri
}

function remoteError({ message, errorCode, errorName, errorType, ...rest }: z.output<typeof errorSchema>): RemoteError {
  return {
    message: message ?? errorName,
    errorCode,
    errorName,
    errorType,
    ...(rest.errorLocation ? { errorLocation: rest.errorLocation } : {}),
    ...causesOf(rest.failureInfo),
  }
}

const MOST_CAUSES = 20
/** The most characters of a failure with its causes, as JSON. A longer one is left out, because it stays in memory. */
const MOST_FAILURE = 64 * 1024

function causesOf(given: unknown): Pick<RemoteError, 'failureInfo'> {
  if (!isObject(given)) return {}
  const failureInfo = withoutStacks(given, MOST_CAUSES)
  return JSON.stringify(failureInfo).length > MOST_FAILURE ? {} : { failureInfo }
}

/** A failure with its causes, but without stacks, which show the inside of the cluster. */
function withoutStacks(failure: Readonly<Record<string, unknown>>, depth: number): Record<string, unknown> {
  const { type, message, errorInfo, errorLocation, cause, suppressed } = failure
  const others = Array.isArray(suppressed) && depth > 0 ? suppressed.filter(isObject).slice(0, MOST_CAUSES) : []
  return {
    ...(typeof type === 'string' ? { type } : {}),
    ...(typeof message === 'string' ? { message } : {}),
    ...(isObject(cause) && depth > 0 ? { cause: withoutStacks(cause, depth - 1) } : {}),
    suppressed: others.map((each) => withoutStacks(each, 0)),
    stack: [],
    ...(isObject(errorInfo) ? { errorInfo } : {}),
    ...(isObject(errorLocation) ? { errorLocation } : {}),
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function nonsense(cluster: string, why: string): ClusterLost {
  return new ClusterLost(cluster, 'nonsense', why)
}
