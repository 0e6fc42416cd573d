import type { WriteTarget } from '../connectors/spi/table-writer.ts'
import type { Fragment, Split } from '../execution/api/fragment.ts'

/** What the scheduler knows of a stage; stage 0 is the root. */
export interface StagePlan {
  readonly id: number
  /** Absent on a root that only relays its one input. */
  readonly fragment?: Fragment
  /** Of a fragment that is not kept, since it has secrets: what it takes to go on with a task that was made of it. */
  readonly withheld?: { readonly streams: boolean; readonly target?: WriteTarget | undefined }
  /** Where its tasks run: in the coordinator's engine, or on workers. */
  readonly distribution: 'coordinator' | 'single'
  /** Stages whose output it reads. */
  readonly inputs: readonly number[]
  readonly splits: readonly Split[]
}
