import type { EngineJob, Role } from './engine-job.ts'

/** Jobs that wait for an engine of their lane, each lane in the order of arrival. */
export class WaitingJobs {
  readonly #lanes: Record<Role, EngineJob[]> = { shared: [], dedicated: [] }

  /** Adds a job at the end of its lane. */
  add(job: EngineJob): void {
    this.#lanes[job.lane()].push(job)
  }

  remove(job: EngineJob): void {
    for (const lane of Object.values(this.#lanes)) {
      const index = lane.indexOf(job)
      if (index >= 0) lane.splice(index, 1)
    }
  }

  count(role: Role): number {
    return this.#lanes[role].length
  }

  /** Removes and returns the job of a lane that has waited longest. */
  next(role: Role): EngineJob | undefined {
    return this.#lanes[role].shift()
  }

  /** Rejects and removes all waiting jobs. */
  rejectAll(error: Error): void {
    for (const job of [...this.#lanes.shared.splice(0), ...this.#lanes.dedicated.splice(0)]) job.reject(error)
  }
}
