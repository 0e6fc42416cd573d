import type { QueryStateKind } from '../../coordinator/query/state.ts'

/** States that clients may ask for, by the names that they are told. */
export const queryStates = [
  'QUEUED',
  'PLANNING',
  'STARTING',
  'RUNNING',
  'FINISHING',
  'FINISHED',
  'FAILED',
] as const satisfies readonly QueryStateKind[]
