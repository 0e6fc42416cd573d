import type { ResultPage } from '../../../events/event-log.ts'
import { deferred } from '../../../shared/deferred.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { QueryCommand } from './decider.ts'
import type { QueryAggregate, QueryStep } from './query-aggregate.ts'

/** Appends a query's steps. The first steps are held a little, so that a statement that ends at once is one append. */
export interface Recorder {
  /** Resolves when the steps' events are valid. */
  record(steps: readonly QueryStep[], pages?: readonly ResultPage[]): Promise<void>
  /**
   * Records commands that may wait for the next append, but no longer than the hold; their events have the time of this
   * call.
   */
  recordSoon(commands: readonly QueryCommand[]): Promise<void>
  /** Appends the held steps now. */
  flush(): void
  /** Holds the first steps for this long from now on, if they are still held: further steps come soon, milliseconds. */
  holdOn(ms: number): void
  /**
   * Resolves when the query's first event is valid; rejects when it never will be. Steps in the same append may be
   * refused alone.
   */
  readonly first: Promise<void>
  dispose(): void
}

/** @param create the query's first step; undefined for a query that is in the log already */
export function createRecorder(
  aggregate: QueryAggregate,
  create: QueryStep | undefined,
  { holdMs, clock }: { readonly holdMs: number; readonly clock: Clock },
): Recorder {
  let held: { readonly steps: QueryStep[]; readonly pages: ResultPage[] } | undefined = create && {
    steps: [create],
    pages: [],
  }
  const first = deferred()
  /** Settles with everything that was appended together with the first event. */
  const together = deferred()
  if (!held) first.resolve()
  let timer = held ? setTimeout(flush, holdMs) : undefined

  function flush(): void {
    if (!held) return
    const { steps, pages } = held
    held = undefined
    clearTimeout(timer)
    aggregate.execute(steps, pages).then(
      () => {
        first.resolve()
        together.resolve()
      },
      (error: unknown) => {
        if (aggregate.state.kind === 'NONE') first.reject(error)
        else first.resolve()
        together.reject(error)
      },
    )
  }

  async function record(steps: readonly QueryStep[], pages: readonly ResultPage[] = []): Promise<void> {
    if (held) {
      held.steps.push(...steps)
      held.pages.push(...pages)
      flush()
      return together.promise
    }
    await aggregate.execute(steps, pages)
  }

  return {
    record,
    recordSoon(commands) {
      if (!held) return record(commands)
      const at = new Date(clock.now()).toISOString()
      held.steps.push(...commands.map((command) => ({ ...command, at })))
      return together.promise
    },
    flush,
    holdOn(ms) {
      if (!held) return
      clearTimeout(timer)
      timer = setTimeout(flush, ms)
    },
    first: first.promise,
    dispose: () => clearTimeout(timer),
  }
}
