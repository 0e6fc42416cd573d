import { setTimeout as sleep } from 'node:timers/promises'
import { Fenced, type LogEnd, type LogWentBackwards, type WriterClaim } from '../../events/event-log.ts'

export interface TenureDeps {
  readonly log: LogEnd & Pick<WriterClaim, 'fenced'>
  readonly epoch: number
  /**
   * The queries that run here. They are left to the next coordinator as they are; open polls get their state as an
   * answer.
   */
  readonly queries: () => Iterable<{ suspend(): void }>
  /** Makes requests go to the coordinator that writes from now on. */
  readonly standAside: () => void
  /** How long requests under way may finish when the log is lost, milliseconds. */
  readonly resignMs: number
  /** Called at once when another process writes. */
  readonly onLost: (reason: string) => void
  /** Called once for each worker that refuses this coordinator for an epoch that the log has never had. */
  readonly onDisbelieved: (nodeUrl: string) => void
  /**
   * Called when the tenure is over, and no request is under way. With `broken` the log has changed: the process must
   * end.
   */
  readonly end: (reason: string, broken: boolean) => void
}

/**
 * The time in which a process writes the log, from its claim until it drains or another process writes.
 *
 * ```
 * OPEN ─ drain ─► DRAINING
 *   └─────────── another one writes ─► LOST ─► the process follows
 * ```
 */
export class Tenure {
  readonly #deps: TenureDeps
  readonly #disbelieved = new Set<string>()
  #state: 'OPEN' | 'DRAINING' | 'LOST' = 'OPEN'

  constructor(deps: TenureDeps) {
    this.#deps = deps
    void deps.log.fenced.then((reason) => this.#lose(reason))
  }

  /** Whether new statements are accepted, and errors are faults of this process. */
  get open(): boolean {
    return this.#state === 'OPEN'
  }

  /** Stops admission. */
  drain(): void {
    if (this.#state === 'OPEN') this.#state = 'DRAINING'
    this.#suspend()
  }

  /**
   * Checks a worker's claim about epochs in the log, so that a worker that is wrong, or lies, does not end a
   * coordinator.
   * @returns whether another process writes
   */
  async refusedBy(nodeUrl: string): Promise<boolean> {
    const { log, epoch, onDisbelieved } = this.#deps
    const tip = await log.tip()
    if ((tip.at[0]?.state.epoch ?? 0) > epoch) {
      void this.#lose(new Fenced('A worker has seen a higher epoch'))
      return true
    }
    if (!this.#disbelieved.has(nodeUrl)) onDisbelieved(nodeUrl)
    this.#disbelieved.add(nodeUrl)
    return false
  }

  /** Another process writes: clients only get answers that make them wait, until they reach the new writer. */
  async #lose(reason: Fenced | LogWentBackwards): Promise<void> {
    if (this.#state === 'LOST') return
    const drains = this.#state === 'DRAINING'
    this.#state = 'LOST'
    const { standAside, resignMs, onLost, end } = this.#deps
    onLost(reason.message)
    this.#suspend()
    if (!drains) standAside()
    await sleep(resignMs)
    end(reason.message, !(reason instanceof Fenced))
  }

  #suspend(): void {
    for (const query of this.#deps.queries()) query.suspend()
  }
}
