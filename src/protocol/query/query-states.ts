import type { QueryStateKind } from '../../coordinator/query/stream/state.ts'

/** States that clients can filter by, under the names that clients see. */
export const queryStates = [
  'QUEUED',
  'PLANNING',
  'STARTING',
  'RUNNING',
  'FINISHING',
  'FINISHED',
  'FAILED',
] as const satisfies readonly QueryStateKind[]
