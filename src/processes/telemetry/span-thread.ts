/**
 * Program of the thread that makes and sends spans. Most of a trace's cost is folding a query's events again, making
 * the SDK's spans, encoding and sending them. In this thread it delays no statement.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { startSpanExport } from '../../telemetry/otlp-spans.ts'
import type { SpanThreadAnswer, SpanThreadData, SpanThreadMessage } from '../../telemetry/threaded-spans.ts'
import { createSpanMaker, type SpanSource } from './span-maker.ts'

const port = parentPort
if (!port) throw new Error('this is the program of a thread')
const answer = (reply: SpanThreadAnswer): void => port.postMessage(reply)

const sink = await startSpanExport({
  ...(workerData as SpanThreadData),
  onSpans: (result, count) => answer({ result, count }),
})
const maker = createSpanMaker((spans) => sink.emit(spans))

port.on('message', (message: SpanThreadMessage<SpanSource>) => {
  if (message === 'stop') return void sink.stop().then(() => port.close())
  for (const source of message.sources) maker.take(source)
  sink.emit(message.spans)
  answer({ result: 'taken', count: message.sources.length + message.spans.length })
})
