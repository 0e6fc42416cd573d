import type { RequestListener } from 'node:http'
import { waitToClaim } from '../../coordinator/recovery/wait-to-claim.ts'
import type { EpochFollower } from '../../coordinator/recovery/epoch-follower.ts'
import type { WriterLiveness } from '../../coordinator/recovery/writer-liveness.ts'
import type { ProjectionWatch } from '../../events/projection-watch.ts'
import type { Announcement } from '../../execution/api/task.ts'
import type { ChildLife } from '../child-life.ts'
import { claimLog, type ClaimResult } from './claim-log.ts'
import type { CountedBefore } from './coordinator-metrics.ts'
import type { CoordinatorBase } from './wire-base.ts'
import type { FollowingCoordinator } from './wire-follower.ts'
import { wireWriter, type CoordinatorPhase, type HttpEntry, type WritingCoordinator } from './wire-writer.ts'

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
  const { life, base, watching, entry, stopping } = deps
  const { epochs, liveness } = watching
  const { logger } = base.telemetry
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()))
  const counted: CountedBefore = { restarts: new Map(), findings: new Map() }
  let following: Promise<FollowingCoordinator> | undefined
  let writing: WritingCoordinator | undefined

  // Loaded only when needed, because it loads the libraries of all resources.
  const follower = (): Promise<FollowingCoordinator> =>
    (following ??= import('./wire-follower.ts').then(({ wireFollower }) => wireFollower(life, { base, ...watching })))

  async function follow(announced: readonly Announcement[]): Promise<RequestListener> {
    const role = await follower()
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
    const listener = follow(writing?.announced() ?? [])
    listener.catch(life.fail)
    entry.open((request, response) => void listener.then((serve) => response.destroyed || serve(request, response)))
    void listener.then((serve) => (stopping.signal.aborted ? undefined : entry.open(serve)))
  }

  async function write({ databaseThere, ...claim }: ClaimResult): Promise<void> {
    const before = await following
    writing = await wireWriter({
      life,
      base: { ...base, databaseThere },
      ...claim,
      announced: before?.announced() ?? [],
      entry,
      counted,
      standAside,
    })
    before?.promoted(claim.claimed.epoch)
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
      const claim = await claimLog(base, liveness, stopping.signal)
      if (claim) await write(claim)
    }
  }

  if (won) await write(won)
  else entry.open(await follow([]))
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
