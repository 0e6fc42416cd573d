import type { EngineJob } from './engine-job.ts'

/** Whom an engine serves: many small statements at once, or one that has it to itself. */
export type Role = 'shared' | 'dedicated'

/** Jobs that wait for an engine of their lane, each lane in the order of arrival. */
export class WaitingJobs {
  readonly #lanes: Record<Role, EngineJob[]> = { shared: [], dedicated: [] }

  /** At the end of its lane. */
  add(job: EngineJob): void {
    this.#lanes[job.lane()].push(job)
  }

  remove(job: EngineJob): void {
    for (const lane of Object.values(this.#lanes)) {
      const place = lane.indexOf(job)
      if (place >= 0) lane.splice(place, 1)
    }
  }

  count(role: Role): number {
    return this.#lanes[role].length
  }

  /** The one that waits longest; it waits no more. */
  next(role: Role): EngineJob | undefined {
    return this.#lanes[role].shift()
  }

  /** Tells all who wait, who wait no more. */
  rejectAll(error: Error): void {
    for (const job of [...this.#lanes.shared.splice(0), ...this.#lanes.dedicated.splice(0)]) job.reject(error)
  }
}
