import { setTimeout as sleep } from 'node:timers/promises'
import { ChildKeeper, type ChildSpec, type KeeperHost, type KeeperTimes } from './child-keeper.ts'
import { isHeld, lockDataFolder, type DataFolderLock, type LockRole } from './data-folder-lock.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from './embedded-postgres.ts'
import { idOfSlot } from './engine-ids.ts'
import type { EngineLaunch } from './engine-launch.ts'
import { bindSocket, type ListeningSocket } from './listening-socket.ts'
import type { RestartCount } from './messages.ts'

export interface SupervisorOptions {
  readonly dataDir: string
  /** The socket that the coordinator accepts on; absent where there is no coordinator. */
  readonly listen?: {
    readonly scheme: 'http' | 'https'
    readonly host: string
    readonly port: number
    /** A socket that was bound earlier, while the process still had the right to bind it. */
    readonly bound?: ListeningSocket
  }
  /** Whether to run the embedded Postgres. Otherwise the children get the address from their configuration. */
  readonly embeddedPostgres: boolean
  /**
   * Runs beside another supervisor on the same data folder and shares its Postgres. The supervisor that stops last
   * stops Postgres.
   */
  readonly standby?: boolean
  /**
   * Makes the specs of all children, given the address of the socket. If there is a socket, the first child is the
   * coordinator.
   */
  readonly children: (url: string | undefined) => readonly ChildSpec[]
  readonly times: KeeperTimes
  /** Starts the children's engines as users of their own, in the order of the children. Ends with this supervisor. */
  readonly engines?: EngineLaunch
  /** Prints a line for the operator at run time. */
  readonly print: (line: string) => void
}

/** The state of the system once all of it is up. */
export interface Running {
  readonly url: string | undefined
  readonly postgres: 'started' | 'adopted' | undefined
}

const LEAVE_TO_OWNER_MS = 1_000

/**
 * Owns the listening socket, the data folder, the embedded Postgres and the processes. It holds no state of queries
 * and does no work of its own, so it has no reason to die.
 */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #restarts = new Map<string, RestartCount>()
  readonly #stopping = new AbortController()
  #keepers: ChildKeeper[] = []
  #lock: DataFolderLock | undefined
  #socket: ListeningSocket | undefined
  #postgres: EmbeddedPostgres | undefined
  #postgresStart: Promise<void> | undefined
  #postgresKept: Promise<void> | undefined
  #stopped: Promise<void> | undefined
  /** Resolves when all children have ended on request. */
  readonly retired: Promise<void>
  readonly #resolveRetired: () => void

  constructor(options: SupervisorOptions) {
    this.#options = options
    let resolveRetired = (): void => {}
    this.retired = new Promise((resolve) => (resolveRetired = resolve))
    this.#resolveRetired = resolveRetired
  }

  /**
   * Starts everything at once and resolves when all of it is ready.
   * @throws Error with one line for the operator; everything that was started is then stopped
   */
  async start(): Promise<Running> {
    try {
      return await this.#start()
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async #start(): Promise<Running> {
    const { dataDir, listen, embeddedPostgres, children, times } = this.#options
    this.#socket = listen?.bound
    this.#options.engines?.hold()
    this.#lock = await lockDataFolder(dataDir, this.#role)
    if (listen) this.#socket ??= await bindSocket(listen.scheme, listen.host, listen.port)
    // Postgres starts before the children: their processes would take the processors that initdb needs.
    if (embeddedPostgres) this.#postgresStart = this.#startPostgres()
    this.#keepers = children(this.#socket?.url).map((spec, index) => {
      const accepts = index === 0 && this.#socket !== undefined
      return new ChildKeeper(spec, times, this.#host(accepts, index), accepts ? this.#lock?.deadWriter : undefined)
    })
    for (const keeper of this.#keepers) keeper.start()
    await Promise.all([this.#postgresStart, ...this.#keepers.map((keeper) => keeper.firstReady)])
    return {
      url: this.#socket?.url,
      postgres: this.#postgres && (this.#postgres.adopted ? 'adopted' : 'started'),
    }
  }

  /**
   * Stops the coordinator, then the workers, then Postgres. No process stays behind. Later calls return the first
   * call's promise.
   */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop())
  }

  /** Kills all children and Postgres at once, for an operator who does not want to wait. */
  kill(): void {
    this.#stopping.abort()
    for (const keeper of this.#keepers) keeper.kill()
    if (!this.#postgresIsShared) this.#postgres?.kill()
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    // If this process kept its copy open, connections made after the coordinator's end would wait forever.
    this.#socket?.close()
    const [coordinator, ...workers] = this.#keepers
    await coordinator?.stop()
    await Promise.all(workers.map((keeper) => keeper.stop()))
    this.#options.engines?.stop()
    await this.#options.engines?.gone
    await this.#postgresStart?.catch(() => {})
    if (!this.#postgresIsShared) {
      await this.#postgres?.stop()
      await this.#postgresKept
    }
    this.#lock?.release()
  }

  #host(accepts: boolean, index: number): KeeperHost {
    return {
      ...this.#enginesOf(index),
      url: this.#socket?.url,
      socket: accepts ? this.#socket?.handle : undefined,
      restarts: () => [...this.#restarts.values()],
      database: () => this.#postgres?.connectionString,
      changed: () => this.#remember(),
      retired: () => {
        if (this.#keepers.every(({ retired }) => retired)) this.#resolveRetired()
      },
      restarted: (process, reason) => this.#countRestart(process, reason),
      print: this.#options.print,
    }
  }

  #enginesOf(index: number): Pick<KeeperHost, 'engines'> {
    const { engines } = this.#options
    if (engines === undefined) return {}
    const { ids } = engines.plan
    return {
      engines: {
        child: { firstUser: idOfSlot(ids, index, 0), slots: ids.slots },
        ask: (asked, engineMessage) => engines.ask(index, asked, engineMessage),
        end: () => engines.childEnded(index),
      },
    }
  }

  #countRestart(process: string, reason: RestartCount['reason']): void {
    const key = `${process} ${reason}`
    this.#restarts.set(key, { process, reason, count: (this.#restarts.get(key)?.count ?? 0) + 1 })
    const restarts = [...this.#restarts.values()]
    for (const keeper of this.#keepers) keeper.send({ type: 'restarts', restarts })
  }

  #remember(): void {
    try {
      this.#lock?.update({
        children: this.#keepers.flatMap((keeper) => keeper.identity ?? []),
        writer: this.#keepers[0]?.writer,
      })
    } catch (error) {
      // A full disk must not end the processes. Without this note the next start only knows less about them.
      this.#options.print(`Cannot note the running processes: ${(error as Error).message}`)
    }
  }

  async #startPostgres(): Promise<void> {
    const { dataDir, print } = this.#options
    this.#postgres = await startEmbeddedPostgres({ dataDir, print })
    this.#reportDatabase()
    this.#postgresKept ??= this.#keepPostgres()
  }

  /** Starts Postgres again whenever it ends. The children notice it by their connections and reconnect themselves. */
  async #keepPostgres(): Promise<void> {
    const { dataDir, print, times } = this.#options
    let pauseMs = times.backoffMinMs
    while (this.#postgres) {
      const since = performance.now()
      await this.#postgres.exited
      // The other supervisor starts Postgres if it lives. Two starts at once would conflict.
      if (this.#options.standby)
        await sleep(LEAVE_TO_OWNER_MS, undefined, { signal: this.#stopping.signal }).catch(() => {})
      if (this.#stopping.signal.aborted) return
      if (performance.now() - since > 10 * pauseMs) pauseMs = times.backoffMinMs
      this.#countRestart('postgres', 'exit')
      for (;;) {
        print(`postgres ended; starting it again in ${pauseMs} ms`)
        await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
        if (this.#stopping.signal.aborted) return
        pauseMs = Math.min(pauseMs * 2, times.backoffMaxMs)
        try {
          this.#postgres = await startEmbeddedPostgres({ dataDir, print })
          break
        } catch (error) {
          print((error as Error).message)
        }
      }
      // The supervisor was stopped during this start: stop() has seen only the old server.
      if (this.#stopping.signal.aborted) return this.#postgresIsShared ? undefined : this.#postgres.stop()
      this.#reportDatabase()
    }
  }

  get #role(): LockRole {
    return this.#options.standby ? 'standby' : 'owner'
  }

  get #postgresIsShared(): boolean {
    return isHeld(this.#options.dataDir, this.#role === 'owner' ? 'standby' : 'owner')
  }

  #reportDatabase(): void {
    const url = this.#postgres?.connectionString
    if (url !== undefined) for (const keeper of this.#keepers) keeper.send({ type: 'database', url })
  }
}
