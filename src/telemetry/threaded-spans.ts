import { Worker } from 'node:worker_threads'
import type { SpanExport } from './otlp-spans.ts'
import type { SpanRecord, SpanSink, SpansLater } from './span.ts'

/** What the thread is told at its start. */
export type SpanThreadData = Omit<SpanExport, 'onSpans'>

/** Told to the thread. */
export type SpanThreadMessage<Source> =
  'stop' | { readonly spans: readonly SpanRecord[]; readonly sources: readonly Source[] }

/** What the thread tells: of spans, and of how much it has taken from its queue. */
export interface SpanThreadAnswer {
  readonly result: 'exported' | 'dropped' | 'taken'
  readonly count: number
}

export interface ThreadedSpansOptions extends SpanExport {
  /** Program of the thread: what it makes of sources is its own. */
  readonly program: URL
  /** The thread's environment. */
  readonly env: NodeJS.ProcessEnv
  /** The thread ended by itself; the next spans get another one after a while. */
  readonly onTrouble: (error: Error) => void
}

/** Waiting here or in the thread's queue at most. */
const MOST = 16_384
/** Everything waits so long for company: crossing to the thread costs a tenth of a millisecond, whatever it carries. */
const LINGER_MS = 250
/** More would hold the event loop for milliseconds while it is copied. */
const ENOUGH = 64
const NEXT_THREAD_MS = 10_000
/** The collector gets a second for the last batch. */
const STOP_MS = 2_000

/**
 * Spans are sent by a thread of their own. A slow or dead collector costs spans, which are counted, and neither memory
 * beyond a bound nor anybody's time.
 */
export function startThreadedSpans(options: ThreadedSpansOptions): SpanSink {
  const { onSpans, onTrouble, program, env, ...data } = options
  let spans: SpanRecord[] = []
  let sources: SpansLater[] = []
  let timer: NodeJS.Timeout | undefined
  /** Given to the thread, and not taken yet. */
  let given = 0
  let thread: Worker | undefined
  let brokeAt = -Infinity
  let stopping = false

  function begin(): Worker {
    const begun = new Worker(program, {
      workerData: data,
      env,
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 },
    })
    begun.unref()
    begun.on('message', ({ result, count }: SpanThreadAnswer) => {
      if (result === 'taken') given = Math.max(0, given - count)
      else onSpans(result, count)
    })
    begun.on('error', onTrouble)
    begun.on('exit', () => {
      if (thread === begun) thread = undefined
      brokeAt = performance.now()
      if (given > 0) onSpans('dropped', given)
      given = 0
    })
    return begun
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const message: SpanThreadMessage<SpansLater> = { spans, sources }
    const count = spans.length + sources.length
    spans = []
    sources = []
    if (count === 0) return
    if (!thread && !stopping && performance.now() - brokeAt > NEXT_THREAD_MS) thread = begin()
    if (!thread) return onSpans('dropped', count)
    given += count
    thread.postMessage(message)
  }

  /** @returns whether there is room for so many more */
  function takes(count: number): boolean {
    if (given + spans.length + sources.length + count <= MOST) return true
    onSpans('dropped', count)
    return false
  }
  function arrived(): void {
    if (spans.length + sources.length >= ENOUGH) flush()
    else timer ??= setTimeout(flush, LINGER_MS).unref()
  }

  return {
    enabled: true,
    emit(more) {
      if (!takes(more.length)) return
      for (const span of more) spans.push(span)
      arrived()
    },
    later(source) {
      if (!takes(1)) return
      sources.push(source)
      arrived()
    },
    async stop() {
      stopping = true
      flush()
      const last = thread
      if (!last) return
      last.postMessage('stop' satisfies SpanThreadMessage<SpansLater>)
      let late: NodeJS.Timeout | undefined
      await Promise.race([
        new Promise((resolve) => last.once('exit', resolve)),
        new Promise((resolve) => (late = setTimeout(resolve, STOP_MS))),
      ])
      clearTimeout(late)
      await last.terminate()
    },
  }
}
