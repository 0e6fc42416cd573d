import type { RequestListener } from 'node:http'
import { availableParallelism, totalmem } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { allowedDirectories, loadCatalogs } from '../connectors/spi/catalog-files.ts'
import { withSystemCatalog } from '../connectors/system/system-connector.ts'
import { processMemoryLimit } from '../execution/engine/sandbox.ts'
import { createEnginePool } from '../execution/engine/engine-pool.ts'
import { createAnnouncer } from '../execution/worker/announcer.ts'
import { nodeIdOf } from '../execution/worker/node-id.ts'
import { createTaskManager } from '../execution/worker/task-manager.ts'
import { browserPolicyOf, checkBrowser } from '../protocol/edge/browser-policy.ts'
import { requestTarget } from '../protocol/edge/request-target.ts'
import { HttpProblem, sendProblem, toProblem } from '../protocol/edge/problem.ts'
import { createTaskRoutes } from '../protocol/task/task-routes.ts'
import { internalBearer, loadClusterSecret } from '../security/cluster-secret.ts'
import { isLoopback } from '../shared/loopback.ts'
import type { ChildLife } from './child-life.ts'
import { connectorFactories, duckdbTypeOf, tablesFolder } from './connector-factories.ts'
import { createEngineEvents } from './engine-telemetry.ts'
import { observeRequest } from './http-metrics.ts'
import { engineSettings } from './engine-settings.ts'
import { createProcessTelemetry } from './process-telemetry.ts'
import { traceTaskRequest } from './request-spans.ts'
import { version } from './version.ts'
import { collectWorker, onWorkerEvent, translateAndLog } from './worker-telemetry.ts'

/** A worker whose parts are wired. */
export interface WiredWorker {
  readonly listener: RequestListener
  /** No new tasks; what coordinators wait for is answered. */
  drain(): Promise<void>
  /** After the last answer: ends engines, closes what is open. */
  stop(): Promise<void>
}

/** Files shipped with the project, seen from `dist/cli`. */
const SHIPPED = fileURLToPath(new URL('../../etc', import.meta.url))
const DRAIN_LOOK_MS = 50

/**
 * Puts a worker together.
 * @param url the address under which coordinators reach it
 * @throws ExitError 64 when a catalog file is broken
 */
export async function wireWorker(life: ChildLife, url: string): Promise<WiredWorker> {
  const { config } = life
  const { timeouts, limits } = config
  const startedAt = performance.now()
  const dataDir = resolve(config.dataDir)
  const bearer = internalBearer(loadClusterSecret(dataDir, config.sharedSecret))
  const nodeId = nodeIdOf(dataDir)
  const telemetry = createProcessTelemetry(config, 'worker', nodeId)
  const { logger } = telemetry
  const onEvent = onWorkerEvent(telemetry, (catalog) => catalogs.get(catalog)?.connectorName ?? 'none')
  const catalogs = withSystemCatalog(
    loadCatalogs(resolve(config.catalogDir), connectorFactories, {
      dataDir,
      tablesDir: tablesFolder(config),
      shippedDir: SHIPPED,
      duckdbType: duckdbTypeOf,
      inspect: (question) => engines.inspect(question),
    }),
  )
  const settings = engineSettings(config, {
    folder: dataDir,
    allowedDirectories: allowedDirectories(catalogs),
    // The coordinator's engines take a part as well.
    sharers: config.workers + 1,
    translateError: translateAndLog(telemetry),
    onEvent: createEngineEvents(telemetry.meters, logger),
  })
  const engines = createEnginePool(settings)
  const tasks = createTaskManager({
    folder: dataDir,
    engines,
    catalogs,
    forgetAfterMs: timeouts.workerForgetsMs,
    limits: {
      pageBytes: limits.pageBytes,
      pageMaxBytes: limits.pageMaxBytes,
      queryBytes: limits.pageStoreQueryBytes,
      totalBytes: limits.pageStoreBytes,
    },
    onEvent,
  })
  await Promise.all([engines.start(), tasks.start()])

  const onError = (error: unknown): void => logger.error('request.failed', { err: error }, 'A request failed')
  const routes = createTaskRoutes({
    tasks,
    bearer,
    openReads: isLoopback(config.host),
    url,
    maxBodyBytes: limits.taskBodyBytes,
    onError,
  })
  const policy = browserPolicyOf(config)
  const memoryBytes = Math.min(process.constrainedMemory() || Infinity, totalmem())
  const announcer = createAnnouncer({
    coordinators: config.coordinators,
    bearer,
    onEvent,
    everyMs: timeouts.workerBeatMs,
    announcement: () => ({
      nodeId,
      url,
      version,
      cores: availableParallelism(),
      memoryBytes,
      epochSeen: tasks.epochs.seen(),
      uptimeMillis: Math.round(performance.now()),
    }),
  })
  await announcer.start()
  const { pageStoreBytes } = limits
  telemetry
    .load((meters) =>
      collectWorker(meters, {
        engines,
        tasks,
        pageStoreBytes,
        engineKillBytes: processMemoryLimit(settings.memoryLimitBytes),
      }),
    )
    .catch((error: unknown) => logger.warn('telemetry.trouble', { err: error }, 'There are no metrics'))

  const info = (): string =>
    JSON.stringify({
      nodeVersion: { version },
      environment: config.environment,
      coordinator: false,
      starting: false,
      uptime: `${((performance.now() - startedAt) / 1000).toFixed(2)}s`,
      uri: url,
    })

  return {
    listener: (request, response) => {
      const { path } = requestTarget(request)
      observeRequest(request, response, path, telemetry.meters)
      const fail = (error: unknown): void => {
        const problem = toProblem(error)
        if (problem.status === 500) onError(error)
        sendProblem(request, response, problem)
      }
      try {
        checkBrowser(request, policy)
      } catch (error) {
        telemetry.meters().count('httpRefusals', { reason: 'origin' })
        return fail(error)
      }
      traceTaskRequest(request, response, path, telemetry.spans)
      if (routes(request, response)) return
      if (request.method !== 'GET' && request.method !== 'HEAD') return fail(new HttpProblem(404, 'Not found'))
      if (path === '/metrics') {
        telemetry
          .meters()
          .text()
          .then(({ contentType, body }) => response.writeHead(200, { 'Content-Type': contentType }).end(body))
          .catch(fail)
      } else if (path === '/v1/info') {
        response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(info())
      } else fail(new HttpProblem(404, 'Not found'))
    },
    async drain() {
      tasks.drain()
      await announcer.stop()
      const until = performance.now() + timeouts.drainMs
      while (tasks.usage().running > 0 && performance.now() < until) {
        await new Promise((resolve) => setTimeout(resolve, DRAIN_LOOK_MS))
      }
    },
    async stop() {
      await tasks.stop()
      await engines.stop()
      await telemetry.stop()
    },
  }
}
