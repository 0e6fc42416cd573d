import { resolve } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { waitToClaim, lookCaughtUp } from '../../coordinator/recovery/wait-to-claim.ts'
import { anotherWrites } from '../../coordinator/recovery/claim-epoch.ts'
import { nextAddress, startEpochFollower, type WriterAddress } from '../../coordinator/recovery/epoch-follower.ts'
import { askInfo, createWriterLiveness, type Answer } from '../../coordinator/recovery/writer-liveness.ts'
import { systemStream } from '../../coordinator/system/events.ts'
import { beginning, LogUnavailable } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import { createProjectionWatch, type ProjectionWatch } from '../../events/projection-watch.ts'
import { readLastEpochs } from '../../readmodels/audit/queries.ts'
import { readKnownClusters } from '../../readmodels/clusters/projection.ts'
import { READ_MODELS } from '../../readmodels/projection.ts'
import { loadClusterSecret } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { createHttpClient } from '../../shared/http-client.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { certificateTelemetry } from '../certificate-telemetry.ts'
import type { ChildLife } from '../child-life.ts'
import { claimLog, type ClaimResult } from './claim-log.ts'
import { startRoles, type Watching } from './coordinator-roles.ts'
import { createStartNeeds, type Need } from './start-needs.ts'
import { wireStarting, type StartingServer } from './starting-server.ts'
import { untilUsable } from './until-usable.ts'
import { wireAccess } from './wire-access.ts'
import { wireBase, type CoordinatorBase } from './wire-base.ts'
import { wireWriter, type CoordinatorPhase, type HttpEntry } from './wire-writer.ts'

/**
 * Starts a coordinator. It claims the log if no other coordinator writes it, else follows until it may claim. Resolves
 * when it serves. `coordinator-roles.ts` describes its roles after that.
 * @param info the answer of `/v1/info` until then
 * @throws ExitError 64 or 69 with one line when a dependency is wrong or missing, or another coordinator writes
 */
export async function startCoordinator(
  life: ChildLife,
  info: () => Record<string, unknown>,
  entry: HttpEntry,
): Promise<CoordinatorPhase> {
  const needs = createStartNeeds(life.config.kafkaBrokers.length === 0)
  const { config } = life
  const secret = loadClusterSecret(resolve(config.dataDir), config.sharedSecret)
  const access = wireAccess({ config, secret, files: life.files })
  const served = life.successor || life.follow ? servedMeanwhile(wireStarting(life, needs, access, info), entry) : entry
  const base = await wireBase(life, needs, access)
  const reportCertificate = certificateTelemetry(base.telemetry.logger, base.telemetry.meters)
  entry.onCertificate((news) => {
    reportCertificate(news)
    access.certificate(news)
  })
  entry.onRefusedConnection((reason) => base.telemetry.meters().count('httpRefusals', { reason }))
  const watching = await watchWriter(life, base)
  const { epochs, liveness } = watching
  const stopping = new AbortController()
  const found = await waitFor('log', base, () => lookCaughtUp(liveness))
  if (found !== 'claim' && !life.follow) {
    if (found === 'writes') throw anotherWrites(epochs.writerAddress?.address ?? 'another address')
    await waitToClaim(liveness, stopping.signal)
  }
  const claim = (): Promise<ClaimResult | undefined> => claimLog(base, liveness, stopping.signal)
  let won: ClaimResult | undefined
  if (found === 'claim' || !life.follow) {
    won = await claim()
    if (!won && !life.follow) throw new ExitError(exitCodes.fenced, 'Another coordinator claimed the event log first')
  }
  return startRoles(
    {
      life,
      base,
      watching,
      entry: served,
      stopping,
      claim,
      makeWriter: wireWriter,
      // Loaded only when needed, because it loads the libraries of all resources.
      makeFollower: () =>
        import('./wire-follower.ts').then(({ wireFollower }) => wireFollower(life, { base, ...watching })),
    },
    won,
  )
}

/** Lets a server answer clients until the parts are there. A start that may wait is a pause for clients. */
function servedMeanwhile(starting: StartingServer, entry: HttpEntry): HttpEntry {
  entry.open(starting.listener)
  return {
    ...entry,
    open(listener) {
      starting.handOver(listener)
      entry.open(listener)
    },
  }
}

/** Watches which coordinator writes the log, and when this process may claim it. */
async function watchWriter(life: ChildLife, base: CoordinatorBase): Promise<Watching> {
  const { config, log, ownRead, databaseThere } = base
  const watch = createProjectionWatch(log, ownRead, READ_MODELS.name)
  const known = databaseThere ? await readLastWriter(base, watch) : undefined
  // Without the read models, the log itself names the earlier writers.
  const from = known?.from ?? beginning(await waitFor('log', base, async () => (await log.tip()).at.length))
  base.clusterStates.restore(known?.clusters ?? [], from)
  const epochs = startEpochFollower({
    log,
    from,
    last: known?.last,
    onEvents: base.clusterStates.apply,
    onStopped: (error) => life.fail(error),
  })
  // One connection stays open: a handshake for each question would take most of the time of an answer.
  const http = createHttpClient(base.trust, { keepAlive: true })
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  let before: Answer | undefined
  const reportOf = (answer: Answer, { address: writer }: WriterAddress): void => {
    const text =
      'The certificate of the writer cannot be verified with tlsCaFile: this coordinator neither takes over nor passes requests on'
    if (answer === 'unverified') base.telemetry.logger.error('tls.trouble', { writer }, text)
  }
  const liveness = createWriterLiveness({
    follower: epochs,
    ownAddress: base.address,
    deadWriter: life.deadWriter,
    silentMs: config.timeouts.writerSilentMs,
    jitterMs: config.timeouts.writerSilentJitterMs,
    clock,
    lagMs() {
      const lag = delay.max / 1e6
      delay.reset()
      return lag
    },
    ask: async (address, waitMs) => {
      const answer = await askInfo(http, address, waitMs)
      if (answer !== before) reportOf(answer, address)
      before = answer
      return answer
    },
  })
  return { epochs, liveness, watch }
}

/** Waits for a dependency that was there and went away again during the start. Logs one line for it. */
async function waitFor<T>(need: Need, { patience }: CoordinatorBase, ask: () => Promise<T>): Promise<T> {
  let outcome: { readonly value: T } | { readonly error: unknown } | undefined
  const asked = async (): Promise<void> => {
    try {
      outcome = { value: await ask() }
    } catch (error) {
      if (need === 'database' || error instanceof LogUnavailable) throw error
      outcome = { error }
    }
  }
  await untilUsable(need, asked, { ...patience, waits: true })
  if ('error' in outcome!) throw outcome.error
  return outcome!.value
}

/**
 * Reads the last writer of the log, the clusters, and the position up to which the read models know them. Waits for the
 * read models if this process may wait.
 */
function readLastWriter(
  base: CoordinatorBase,
  watch: ProjectionWatch,
): Promise<{
  readonly from: Awaited<ReturnType<ProjectionWatch['checkpoint']>>
  readonly last: WriterAddress | undefined
  readonly clusters: Awaited<ReturnType<typeof readKnownClusters>>
}> {
  return waitFor('database', base, async () => ({
    from: await watch.checkpoint(),
    last: await lastWriter(base.ownRead),
    clusters: await readKnownClusters(base.ownRead),
  }))
}

/** The last writer of the log, as far as the read models know. */
async function lastWriter(read: QueryRows): Promise<WriterAddress | undefined> {
  const events = await readLastEpochs(read)
  return events.reduce<WriterAddress | undefined>(
    (address, event) => nextAddress(address, { stream: systemStream, ...event }),
    undefined,
  )
}
