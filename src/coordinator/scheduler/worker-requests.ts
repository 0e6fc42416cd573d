import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { internalHeaders } from '../../execution/api/task.ts'
import type { BodyParts } from '../../shared/body-parts.ts'
import { createHttpClient } from '../../shared/http-client.ts'
import { requestOptionsOf } from '../../shared/request-options.ts'
import type { ServerTrust } from '../../shared/server-trust.ts'
import { StaleEpoch, WorkerLost } from './worker-error.ts'

export interface WorkerAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: BodyParts
}

export interface WorkerRequest {
  readonly nodeUrl: string
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | string
  /** The largest answer that a healthy worker gives to this request; a longer one is cut off. */
  readonly maxBytes: number
  /** Silence after which the worker counts as lost, milliseconds. @default requestTimeoutMs */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface WorkerRequestsOptions {
  readonly epoch: () => number
  /** The log to which the epoch belongs. */
  readonly logId: string
  readonly bearer: string
  /** How the worker's certificate is verified. */
  readonly trust: ServerTrust
  readonly requestTimeoutMs: number
  /** Called with the outcome of every request: feeds the decaying counters of the node resource. */
  readonly onOutcome?: (nodeUrl: string, error: Error | undefined) => void
  /** Called when a worker says that it has seen a higher epoch. @returns whether that is true */
  readonly onStaleEpoch: (nodeUrl: string) => Promise<boolean>
}

/** Requests to workers; each carries the epoch and the secret of the cluster. */
export interface WorkerRequests {
  /**
   * Returns any answer, whatever its status, except that of a stale epoch.
   * @throws WorkerLost when there is no answer, or one that no healthy worker gives
   * @throws StaleEpoch when the worker has rightly seen a higher epoch
   */
  send(request: WorkerRequest): Promise<WorkerAnswer>
  close(): void
}

/** A refusal gives its reason in a few words. */
const MAX_REFUSAL_BYTES = 64 * 1024
/** After the timeout, an answer that is slower than any real connection counts as lost. */
const SLOWEST_BYTES_A_MS = 10

export function createWorkerRequests(options: WorkerRequestsOptions): WorkerRequests {
  const http = createHttpClient(options.trust, { keepAlive: true, maxSockets: 64, noDelay: true, timeout: 120_000 })

  function headersOf({ body, headers }: WorkerRequest): Record<string, string> {
    return {
      authorization: `Bearer ${options.bearer}`,
      [internalHeaders.epoch]: String(options.epoch()),
      [internalHeaders.log]: options.logId,
      ...(body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    }
  }

  /** The whole answer. Rejects with the cause of the failure. */
  function exchange(asked: WorkerRequest): Promise<WorkerAnswer> {
    const { nodeUrl, method, path, body, signal, timeoutMs = options.requestTimeoutMs } = asked
    return new Promise((resolve, reject) => {
      const request = http.request(
        { method, ...requestOptionsOf(nodeUrl, path), ...(signal && { signal }), headers: headersOf(asked) },
        (response) => {
          const { statusCode: status = 0, headers } = response
          const maxBytes = status >= 200 && status < 300 ? asked.maxBytes : MAX_REFUSAL_BYTES
          readAll(response, maxBytes, timeoutMs).then((parts) => resolve({ status, headers, body: parts }), reject)
        },
      )
      request.setTimeout(timeoutMs, () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)))
      request.on('error', reject)
      request.end(body)
    })
  }

  return {
    async send(asked) {
      const { nodeUrl, method, signal } = asked
      const lost = (cause: unknown): WorkerLost => {
        const error = new WorkerLost(`${method} ${nodeUrl}: ${(cause as Error).message}`, { cause })
        if (!signal?.aborted) options.onOutcome?.(nodeUrl, error)
        return error
      }
      const answer = await exchange(asked).catch((cause: unknown) => {
        throw lost(cause)
      })
      if (answer.status !== 409) {
        options.onOutcome?.(nodeUrl, undefined)
        return answer
      }
      // The word of one worker does not end a coordinator: the log decides.
      const right = await options.onStaleEpoch(nodeUrl).catch((cause: unknown) => {
        throw lost(cause)
      })
      if (right) throw new StaleEpoch(`${nodeUrl} has seen a higher epoch`)
      throw lost(new Error('it has seen an epoch that the event log has not'))
    },
    close: () => http.close(),
  }
}

/** Reads a body of at most this many bytes; cuts off a sender that sends more, or almost nothing for a long time. */
function readAll(response: IncomingMessage, maxBytes: number, timeoutMs: number): Promise<BodyParts> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    const beganAt = performance.now()
    let bytes = 0
    const cutOff = (why: string): void => {
      reject(new Error(why))
      response.destroy()
    }
    const tooLong = `an answer of more than the ${maxBytes} bytes that it may have`
    if (Number(response.headers['content-length'] ?? 0) > maxBytes) return cutOff(tooLong)
    response.on('data', (part: Buffer) => {
      parts.push(part)
      bytes += part.length
      if (bytes > maxBytes) cutOff(tooLong)
      else if (performance.now() - beganAt > timeoutMs + bytes / SLOWEST_BYTES_A_MS) cutOff('an answer without end')
    })
    response.on('error', reject)
    response.on('aborted', () => reject(new Error('the answer broke off')))
    response.on('end', () => resolve(parts))
  })
}
