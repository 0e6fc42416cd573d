import type { RequestListener } from 'node:http'
import { waitToClaim } from '../../coordinator/recovery/wait-to-claim.ts'
import type { EpochFollower } from '../../coordinator/recovery/epoch-follower.ts'
import type { WriterLiveness } from '../../coordinator/recovery/writer-liveness.ts'
import type { ProjectionWatch } from '../../events/projection-watch.ts'
import type { Announcement } from '../../execution/api/task.ts'
import type { ChildLife } from '../child-life.ts'
import type { ClaimResult } from './claim-log.ts'
import type { CountedBefore } from './coordinator-metrics.ts'
import type { CoordinatorBase } from './wire-base.ts'
import type { FollowingCoordinator } from './wire-follower.ts'
import type { CoordinatorPhase, HttpEntry, WriterDeps, WritingCoordinator } from './wire-writer.ts'

/** Watches which coordinator writes the log, and when this process may. */
export interface Watching {
  readonly epochs: EpochFollower
  readonly liveness: WriterLiveness
  readonly watch: ProjectionWatch
}

export interface RolesDeps {
  readonly life: ChildLife
  readonly base: CoordinatorBase
  readonly watching: Watching
  readonly entry: HttpEntry
  /** Once aborted, this process claims nothing any more. */
  readonly stopping: AbortController
  /** Tries to claim the log. @returns undefined if another coordinator was first */
  readonly claim: () => Promise<ClaimResult | undefined>
  readonly makeWriter: (deps: WriterDeps) => Promise<WritingCoordinator>
  /** Called once at most, when this process first follows. */
  readonly makeFollower: () => Promise<FollowingCoordinator>
}

/**
 * The roles of a coordinator process, one after the other, until it stops.
 *
 * ```
 * starting ─► following ─ the writer is gone ─► claiming ─► writing
 *                 ▲                                │            │
 *                 ├───── another claimed first ────┘            │
 *                 └───── another one writes: fenced ────────────┘
 * ```
 *
 * A fenced writer goes back to following in its own process, with its connections: on a busy machine, a new process
 * would take the processors that the new writer needs.
 * @param won the result if the log was claimed already
 * @returns once it serves, in either role
 */
export async function startRoles(deps: RolesDeps, won: ClaimResult | undefined): Promise<CoordinatorPhase> {
  const { life, base, watching, stopping } = deps
  const { epochs, liveness } = watching
  const { logger } = base.telemetry
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()))
  const counted: CountedBefore = { restarts: new Map(), findings: new Map() }
  let following: Promise<FollowingCoordinator> | undefined
  let writing: WritingCoordinator | undefined
  const nextEntry = createRoleEntries(deps.entry)

  async function follow(announced: readonly Announcement[]): Promise<RequestListener> {
    const role = await (following ??= deps.makeFollower())
    await role.demoted(announced)
    logger.info(
      'epoch.followed',
      { writer: epochs.writerAddress?.address },
      'This coordinator follows the writer of the event log',
    )
    return role.listener
  }

  /** Follows from now on. Requests that arrive meanwhile wait until this process follows. */
  function standAside(): void {
    logger.bind({ epoch: undefined })
    const entry = nextEntry()
    const listener = follow(writing?.announced() ?? [])
    listener.catch(life.fail)
    entry.open((request, response) => void listener.then((serve) => response.destroyed || serve(request, response)))
    void listener.then((serve) => (stopping.signal.aborted ? undefined : entry.open(serve)))
  }

  async function write({ databaseThere, ...claim }: ClaimResult): Promise<void> {
    const before = await following
    const entry = nextEntry()
    writing = await deps.makeWriter({
      life,
      base: { ...base, databaseThere },
      ...claim,
      announced: before?.announced() ?? [],
      entry,
      counted,
      standAside,
    })
    // Another coordinator may have claimed the log while this writer was made. Then this process follows already.
    if (entry.isCurrent()) before?.promoted(claim.claimed.epoch)
  }

  async function live(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (writing) {
        await Promise.race([writing.lost, stopped])
        if (stopping.signal.aborted) return
        await writing.stop()
        writing = undefined
      }
      await waitToClaim(liveness, stopping.signal)
      if (stopping.signal.aborted) return
      const claim = await deps.claim()
      if (claim) await write(claim)
    }
  }

  if (won) await write(won)
  else nextEntry().open(await follow([]))
  const lives = live()
  lives.catch((error: unknown) => life.fail(error))
  return {
    drain: async () => {
      stopping.abort()
      await lives
      await (writing ?? (await following))?.drain()
    },
    stop: async () => {
      await epochs.stop()
      await writing?.stop()
      await (await following)?.stop()
      await base.stop()
    },
  }
}

/** The entry of one role. */
interface RoleEntry extends HttpEntry {
  /** Whether no later role has taken the entry. */
  isCurrent(): boolean
}

/**
 * Gives each role an entry of its own. Once a later role has taken the entry, `open` of an earlier one has no effect: a
 * writer that is fenced while it is made opens its listener after the follower.
 * @returns a function that takes the entry for a new role
 */
export function createRoleEntries(entry: HttpEntry): () => RoleEntry {
  let latest = 0
  return () => {
    const own = ++latest
    const isCurrent = (): boolean => own === latest
    return {
      ...entry,
      isCurrent,
      open: (listener) => {
        if (isCurrent()) entry.open(listener)
      },
    }
  }
}
