import type { WriteTarget } from '../connectors/spi/table-writer.ts'
import type { Fragment, Split } from '../execution/api/fragment.ts'

/** The scheduler's view of a stage; stage 0 is the root. */
export interface StagePlan {
  readonly id: number
  /** Absent for a root that only relays its one input. */
  readonly fragment?: Fragment
  /** For a fragment that is not stored because it contains secrets: the data needed to continue with its task. */
  readonly withheld?: { readonly streams: boolean; readonly target?: WriteTarget | undefined }
  /** Where its tasks run: in the coordinator's engine, or on workers. */
  readonly distribution: 'coordinator' | 'single'
  /** The stages whose output it reads. */
  readonly inputs: readonly number[]
  readonly splits: readonly Split[]
}
