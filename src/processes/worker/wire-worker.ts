import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { availableParallelism, totalmem } from 'node:os'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { allowedDirectories } from '../../connectors/spi/catalog-files.ts'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { withSystemCatalog } from '../../connectors/system/system-connector.ts'
import { createUnknownCatalog } from '../../connectors/trino/trino-connector.ts'
import type { EnginePool, EngineSettings } from '../../execution/engine/engine.ts'
import { createEnginePool } from '../../execution/engine/engine-pool.ts'
import { createEngineEvents } from '../../execution/engine/engine-telemetry.ts'
import { processMemoryLimit } from '../../execution/engine/sandbox.ts'
import type { Announcement, ForgottenEpochs } from '../../execution/api/task.ts'
import { createAnnouncer } from '../../execution/worker/announcer.ts'
import { dropForgottenEpochs, readForgottenEpochs } from '../../execution/worker/forgotten-epochs.ts'
import { nodeIdOf } from '../../execution/worker/node-id.ts'
import { createTaskManager, type TaskManager, type TaskManagerOptions } from '../../execution/worker/task-manager.ts'
import { collectWorker, onWorkerEvent } from '../../execution/worker/worker-telemetry.ts'
import { watchersBy } from '../../protocol/access/authenticate.ts'
import { browserPolicyOf } from '../../protocol/edge/browser-policy.ts'
import { createTaskRoutes } from '../../protocol/task/task-routes.ts'
import { createWorkerState } from '../../protocol/task/worker-state.ts'
import { deriveKey, internalBearer, loadClusterSecret } from '../../security/cluster-secret.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { createRowDigester } from '../../shared/row-digest.ts'
import { createServerTrust } from '../../shared/server-trust.ts'
import { version } from '../../shared/version.ts'
import { certificateTelemetry } from '../certificate-telemetry.ts'
import type { ChildLife } from '../child-life.ts'
import { configuredCatalogs } from '../connector-factories.ts'
import { engineSettings } from '../engine-settings.ts'
import type { GatedServer } from '../gated-server.ts'
import { createProcessTelemetry, type ProcessTelemetry } from '../telemetry/process-telemetry.ts'
import { translateAndLog } from './translate-and-log.ts'
import { createWorkerListener } from './worker-listener.ts'
import type { NodeId } from '../../shared/ids.ts'

/** A worker whose parts are wired. */
export interface WiredWorker {
  readonly listener: RequestListener
  /** Takes no new tasks, and answers the requests that coordinators wait for. */
  drain(): Promise<void>
  /** Ends the engines and closes everything that is open. Called after the last answer. */
  stop(): Promise<void>
}

const DRAIN_LOOK_MS = 50
/** After this time a coordinator has heard that the worker takes no more tasks. */
const LEAVE_LOOK_MS = 1_000

/**
 * Puts a worker together.
 * @param url the address under which coordinators reach it
 * @throws ExitError 64 when a catalog file is broken
 */
export async function wireWorker(
  life: ChildLife,
  url: string,
  entry: Pick<GatedServer, 'onRefusedConnection' | 'onCertificate'>,
): Promise<WiredWorker> {
  const { config } = life
  const { timeouts, limits } = config
  const startedAt = performance.now()
  const dataDir = resolve(config.dataDir)
  const secret = loadClusterSecret(dataDir, config.sharedSecret)
  const bearer = internalBearer(secret)
  const nodeId = nodeIdOf(dataDir)
  const telemetry = createProcessTelemetry(config, 'worker', nodeId)
  const { logger } = telemetry
  entry.onCertificate(certificateTelemetry(logger, telemetry.meters))
  entry.onRefusedConnection((reason) => telemetry.meters().count('httpRefusals', { reason }))
  const onEvent = onWorkerEvent(telemetry, (catalog) => catalogs.get(catalog)?.connectorName ?? 'none')
  const { catalogs, engines, engineUse } = wireEngines(life, dataDir, telemetry)
  const tasks = taskManagerOf(config, { engines, catalogs, secret, onEvent })
  await Promise.all([engines.start(), tasks.start()])
  const logLeaving = (): void =>
    logger.info(
      'worker.leaves',
      { tasks: tasks.usage().tasks },
      'The worker takes no new tasks, and ends when its tasks are no longer needed',
    )
  const leaving = createLeaving(tasks, { last: life.last, asked: logLeaving }, () => {
    logger.info('worker.leaves', {}, 'The tasks of the worker are no longer needed: it ends as requested')
    life.end()
  })
  let forgotten = readForgottenEpochs(dataDir)
  const announcer = createAnnouncer({
    coordinators: config.coordinators,
    bearer,
    trust: createServerTrust(config, life.identity.last?.cert),
    onEvent,
    everyMs: timeouts.workerBeatMs,
    announcement: announcementOf({
      nodeId,
      url,
      tasks,
      engines,
      forgotten: () => forgotten[0],
      leaving: () => leaving.asked(),
    }),
    onRecorded(id) {
      if (forgotten[0]?.id !== id) return
      dropForgottenEpochs(dataDir, id)
      forgotten = readForgottenEpochs(dataDir)
    },
  })
  await announcer.start()
  telemetry
    .load((meters) =>
      collectWorker(meters, {
        engines,
        tasks,
        pageStoreBytes: limits.pageStoreBytes,
        engineKillBytes: processMemoryLimit(engineUse.memoryLimitBytes),
      }),
    )
    .catch((error: unknown) => logger.warn('telemetry.trouble', { err: error }, 'The worker has no metrics'))
  const onError = (error: unknown): void => logger.error('request.failed', { err: error }, 'A request failed')
  return {
    listener: createWorkerListener({
      policy: browserPolicyOf(config),
      tasks: createTaskRoutes({
        tasks,
        bearer,
        openReads: isLoopback(config.host) && config.authentication.length === 0,
        url,
        maxBodyBytes: limits.taskBodyBytes,
        onError,
      }),
      state: createWorkerState({
        tasks,
        bearer,
        openReads: false,
        nodeId,
        isLeaving: leaving.asked,
        leave: leaving.ask,
      }),
      info: () => ({
        nodeVersion: { version },
        environment: config.environment,
        coordinator: false,
        starting: false,
        uptime: `${((performance.now() - startedAt) / 1000).toFixed(2)}s`,
        uri: url,
      }),
      meters: telemetry.meters,
      mayWatch: asksWatchers(config) ? watchersBy(config.metricsToken) : () => true,
      spans: telemetry.spans,
      onError,
    }),
    async drain() {
      tasks.drain()
      await (leaving.asked() ? announcer.leave() : announcer.stop())
      const until = performance.now() + timeouts.drainMs
      while (tasks.usage().running > 0 && performance.now() < until) await sleep(DRAIN_LOOK_MS)
    },
    async stop() {
      await tasks.stop()
      await engines.stop()
      await telemetry.stop()
    },
  }
}

function taskManagerOf(
  { dataDir, timeouts, limits }: ChildLife['config'],
  { secret, ...deps }: Pick<TaskManagerOptions, 'engines' | 'catalogs' | 'onEvent'> & { readonly secret: string },
): TaskManager {
  return createTaskManager({
    ...deps,
    folder: resolve(dataDir),
    digester: createRowDigester(deriveKey(secret, 'result-digests')),
    forgetAfterMs: timeouts.workerForgetsMs,
    limits: {
      pageBytes: limits.pageBytes,
      pageMaxBytes: limits.pageMaxBytes,
      queryBytes: limits.pageStoreQueryBytes,
      totalBytes: limits.pageStoreBytes,
    },
  })
}

/**
 * Whether readers of metrics must identify themselves: clients must authenticate, or a metrics token is set. A worker
 * may know only the token.
 */
function asksWatchers({ authentication, metricsToken }: ChildLife['config']): boolean {
  return authentication.length > 0 || metricsToken !== undefined
}

/** Makes the catalogs and the engines. Each of them uses the other. */
function wireEngines(
  { config, engines: launcher }: Pick<ChildLife, 'config' | 'engines'>,
  dataDir: string,
  telemetry: ProcessTelemetry,
): { readonly catalogs: Catalogs; readonly engines: EnginePool; readonly engineUse: EngineSettings } {
  const configured = configuredCatalogs(config, (question) => engines.inspect(question))
  const others: Catalogs = { names: () => [], get: createUnknownCatalog }
  const catalogs = withSystemCatalog(configured, undefined, undefined, () => others)
  const engineUse = engineSettings(config, {
    folder: dataDir,
    launcher,
    allowedDirectories: allowedDirectories(catalogs),
    // The coordinator's engines take a share as well.
    sharers: config.workers + 1,
    translateError: translateAndLog(telemetry.logger),
    onEvent: createEngineEvents(telemetry.meters, telemetry.logger),
  })
  const engines = createEnginePool(engineUse)
  return { catalogs, engines, engineUse }
}

/**
 * Shuts the worker down on request. It takes no new tasks. Its present tasks stay, with their pages, for the
 * coordinators that need them.
 */
function createLeaving(
  tasks: Pick<TaskManager, 'drain' | 'usage'>,
  { last, asked }: { readonly last: () => Promise<void>; readonly asked: () => void },
  leave: () => void,
) {
  let timer: NodeJS.Timeout | undefined
  return {
    asked: () => timer !== undefined,
    ask(): Promise<void> {
      tasks.drain()
      if (timer === undefined) asked()
      timer ??= setInterval(() => {
        if (tasks.usage().tasks > 0) return
        clearInterval(timer)
        leave()
      }, LEAVE_LOOK_MS)
      // If the worker crashes during this wait, the supervisor must not restart it.
      return last()
    },
  }
}

type Announced = Parameters<typeof createAnnouncer>[0]['announcement']

interface AnnouncedWorker {
  readonly nodeId: NodeId
  readonly url: string
  readonly tasks: TaskManager
  readonly engines: Pick<EnginePool, 'children'>
  /** Forgotten epochs that are not in the log yet. */
  readonly forgotten: () => ForgottenEpochs | undefined
  readonly leaving: () => boolean
}

const PROCESS_UUID = randomUUID()

function announcementOf({ nodeId, url, tasks, engines, forgotten, leaving }: AnnouncedWorker): Announced {
  const memoryBytes = Math.min(process.constrainedMemory() || Infinity, totalmem())
  const forgottenPart = (): Pick<Announcement, 'forgottenEpochs'> => {
    const forgottenEpochs = forgotten()
    return forgottenEpochs ? { forgottenEpochs } : {}
  }
  return () => ({
    ...forgottenPart(),
    ...(leaving() && { state: 'shutting_down' as const }),
    nodeId,
    url,
    version,
    cores: availableParallelism(),
    memoryBytes,
    epochSeen: tasks.epochs.seen(),
    processUuid: PROCESS_UUID,
    uptimeMillis: Math.round(performance.now()),
    freeEngines: engines.children().filter(({ state }) => state === 'spare' || state === 'idle').length,
  })
}
