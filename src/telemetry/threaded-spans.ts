import { Worker } from 'node:worker_threads'
import type { SpanExport } from './otlp-spans.ts'
import type { SpanRecord, SpanSink, SpansLater } from './span.ts'

/** The data that the thread gets at its start. */
export type SpanThreadData = Omit<SpanExport, 'onSpans'>

/** A message to the thread. */
export type SpanThreadMessage<Source> =
  | 'stop'
  | { readonly spans: readonly SpanRecord[]; readonly sources: readonly Source[] }

/** A message from the thread: what became of spans, and how many items it has taken from its queue. */
export interface SpanThreadAnswer {
  readonly result: 'exported' | 'dropped' | 'taken'
  readonly count: number
}

export interface ThreadedSpansOptions extends SpanExport {
  /** The program of the thread. It decides what to make of sources. */
  readonly program: URL
  /** The thread's environment. */
  readonly env: NodeJS.ProcessEnv
  /** Called when the thread ended by itself. After a pause, the next spans start another thread. */
  readonly onTrouble: (error: Error) => void
}

/** The maximum number of items that wait, here or in the thread's queue. */
const MOST = 16_384
/** How long items wait for more: sending to the thread costs a tenth of a millisecond, whatever the size. */
const LINGER_MS = 250
/** The maximum number of items sent at once. Copying more would hold the event loop for milliseconds. */
const ENOUGH = 64
const NEXT_THREAD_MS = 10_000
/** The collector gets one second for the last batch. */
const STOP_MS = 2_000

/**
 * Sends spans in a thread of their own. With a slow or dead collector spans are lost, which is counted. It costs only
 * bounded memory and delays nothing.
 */
export function startThreadedSpans(options: ThreadedSpansOptions): SpanSink {
  const { onSpans, onTrouble, program, env, ...data } = options
  let spans: SpanRecord[] = []
  let sources: SpansLater[] = []
  let timer: NodeJS.Timeout | undefined
  /** How many items were sent to the thread and not yet taken. */
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

  /** @returns whether there is room for this number of further items */
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
