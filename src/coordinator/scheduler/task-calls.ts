import type { TaskId } from '../../shared/ids.ts'
import { entitySpanId, formatTraceparent, newSpanId, parseTraceparent } from '../../telemetry/trace-context.ts'
import type { WorkerAnswer } from './worker-requests.ts'

/** A request that changes a task of a traced query. */
export interface TaskCall {
  readonly name: 'task-update' | 'task-delete'
  readonly taskId: TaskId
  readonly nodeUrl: string
  /** The traceparent of the stage. */
  readonly traceparent: string
  /** The id of the request's own span, the parent of the worker's span. */
  readonly spanId: string
  /** Absent when there was no answer. */
  readonly status: number | undefined
  readonly milliseconds: number
}

type TaskCallListener = ((call: TaskCall) => void) | undefined

/** Makes a request with headers that name its span, and reports it; without a trace, only makes the request. */
export async function withinTaskCall(
  onTaskCall: TaskCallListener,
  { name, taskId, nodeUrl }: Pick<TaskCall, 'name' | 'taskId' | 'nodeUrl'>,
  traceparent: string | undefined,
  call: (headers: Readonly<Record<string, string>>) => Promise<WorkerAnswer>,
): Promise<WorkerAnswer> {
  const context = onTaskCall ? parseTraceparent(traceparent) : undefined
  if (traceparent === undefined || !context?.sampled) return call({})
  const start = performance.now()
  // The same id as a successor would use: its stand-in is the parent of the worker's span when this span is lost.
  const spanId = name === 'task-update' ? entitySpanId(name, taskId) : newSpanId()
  let status: number | undefined
  try {
    const answer = await call({ traceparent: formatTraceparent({ ...context, spanId }) })
    status = answer.status
    return answer
  } finally {
    const milliseconds = performance.now() - start
    onTaskCall?.({ name, taskId, nodeUrl, traceparent, spanId, status, milliseconds })
  }
}
