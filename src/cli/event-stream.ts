import { setTimeout as sleep } from 'node:timers/promises'
import type { IncomingMessage } from 'node:http'
import type { HttpClient } from '../shared/http-client.ts'
import { QuipuError } from '../shared/quipu-error.ts'
import { requestOptionsOf } from '../shared/request-options.ts'

/** One block of `text/event-stream`, in the form in which a browser's EventSource would give it. */
export interface ServerSentEvent {
  /** The last id that the server sent, up to and including this block. */
  readonly id: string
  readonly event: string
  readonly data: string
}

/**
 * Parses `text/event-stream`. A block with only an id is yielded too, with empty data: a client that reconnects
 * continues after it. A block that the end of the stream cuts off is dropped.
 */
export async function* parseEventStream(
  bytes: AsyncIterable<Uint8Array>,
  lastId = '',
): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder()
  let rest = ''
  let id = lastId
  let warned = false
  let event = ''
  let data: string[] = []
  for await (const part of bytes) {
    const lines = (rest + decoder.decode(part, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const withReturn of lines) {
      const line = withReturn.endsWith('\r') ? withReturn.slice(0, -1) : withReturn
      if (line === '') {
        if (data.length > 0 || warned) yield { id, event: event || 'message', data: data.join('\n') }
        warned = false
        event = ''
        data = []
        continue
      }
      const colon = line.indexOf(':')
      const field = colon < 0 ? line : line.slice(0, colon)
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
      if (field === 'data') data.push(value)
      else if (field === 'event') event = value
      else if (field === 'id') {
        id = value
        warned = true
      }
    }
  }
}

export interface FollowRequest {
  /** The address with its filters. */
  readonly url: string
  readonly http: HttpClient
  readonly headers: Readonly<Record<string, string>>
  /** Begin after this id; undefined: begin now. */
  readonly after: string | undefined
  readonly signal: AbortSignal
  /** Called with the position of the feed when no event has it, such as where the feed begins. */
  readonly onPosition?: (id: string) => void
  /** Called with the reason each time the connection is lost. */
  readonly onLost?: (error: Error) => void
}

/** The server sends something every 15 s. A connection that is silent for longer is dead. */
const SILENT_MS = 45_000
const LONGEST_PAUSE_MS = 2_000

/**
 * Follows a feed forever. A connection that ends is opened again after the last id, so no event is lost or repeated.
 * @throws FeedRefusedError when the server says that a retry is useless
 */
export async function* followEvents(request: FollowRequest): AsyncGenerator<ServerSentEvent> {
  const { signal } = request
  let id = request.after
  for (let pauseMs = 100; !signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(new Error('The server has been silent for too long')), SILENT_MS)
    try {
      const headers = { ...request.headers, accept: 'text/event-stream', ...(id ? { 'last-event-id': id } : {}) }
      const response = await begin(request, headers, AbortSignal.any([signal, silence.signal]))
      if (response.statusCode !== 200) throw await refusal(response)
      for await (const event of parseEventStream(refreshed(response, timer), id)) {
        pauseMs = 100
        id = event.id
        if (event.data !== '') yield event
        else request.onPosition?.(id)
      }
      // The server ended the connection: it drains, and its successor continues.
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof FeedRefusedError) throw error
      request.onLost?.(error as Error)
    } finally {
      clearTimeout(timer)
      silence.abort()
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => {})
  }
}

function begin(
  { url, http }: FollowRequest,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { origin, pathname, search } = new URL(url)
  return new Promise((resolve, reject) => {
    http
      .request({ ...requestOptionsOf(origin, `${pathname}${search}`), headers, signal }, resolve)
      .on('error', reject)
      .end()
  })
}

/** Thrown when a retry is useless. */
export class FeedRefusedError extends QuipuError {
  readonly retry = 'never'
}

async function refusal(response: IncomingMessage): Promise<Error> {
  const status = response.statusCode ?? 0
  let text = ''
  for await (const part of response.setEncoding('utf8')) text += String(part)
  let detail = text.trim().split('\n')[0] ?? ''
  try {
    detail = (JSON.parse(text) as { detail?: string }).detail ?? detail
  } catch {
    // The answer came from a proxy in between.
  }
  const message = `The server answered ${status}: ${detail}`
  const passing = status === 429 || status >= 500
  return passing ? new Error(message) : new FeedRefusedError(message)
}

async function* refreshed(body: AsyncIterable<Uint8Array>, timer: NodeJS.Timeout): AsyncGenerator<Uint8Array> {
  for await (const part of body) {
    timer.refresh()
    yield part
  }
}
