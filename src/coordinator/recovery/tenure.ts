import { setTimeout as sleep } from 'node:timers/promises'
import { Fenced, type LogEnd, type LogWentBackwards, type WriterClaim } from '../../events/event-log.ts'

export interface TenureDeps {
  readonly log: LogEnd & Pick<WriterClaim, 'fenced'>
  readonly epoch: number
  /** What runs here: left to the next coordinator as it is, open polls are answered with its state. */
  readonly queries: () => Iterable<{ suspend(): void }>
  /** From now on requests go to the coordinator that writes. */
  readonly standAside: () => void
  /** Answers under way get so long when the log is lost, milliseconds. */
  readonly resignMs: number
  /** Another one writes: told at once. */
  readonly onLost: (reason: string) => void
  /** A worker refuses this coordinator for an epoch that the log has never had; told once for each. */
  readonly onDisbelieved: (nodeUrl: string) => void
  /** The tenure is over, and no answer is under way. With `broken` the log is not what it was: the process must end. */
  readonly end: (reason: string, broken: boolean) => void
}

/**
 * The time in which a process writes the log, from its claim until it drains or another one writes.
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

  /** New statements are taken, and what fails here is a fault of this process. */
  get open(): boolean {
    return this.#state === 'OPEN'
  }

  /** No admission any more. */
  drain(): void {
    if (this.#state === 'OPEN') this.#state = 'DRAINING'
    this.#suspend()
  }

  /**
   * What a worker says of epochs is asked of the log: a worker that is wrong, or lies, ends no coordinator.
   * @returns whether another one writes
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

  /** Another one writes: clients are told nothing but that they wait, until they come to it. */
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
