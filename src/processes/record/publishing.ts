import type pg from 'pg'
import type { Config } from '../../config/load-config.ts'
import type { Checkpoint, EventLog } from '../../events/event-log.ts'
import type { DestinationSettings } from '../../publishing/destination.ts'
import { openLineage } from '../../publishing/open-lineage.ts'
import { publicFeed } from '../../publishing/public-feed.ts'
import type { Publication } from '../../publishing/publication.ts'
import { publishedCheckpoints } from '../../publishing/published-checkpoints.ts'
import { startPublisher, type Publisher } from '../../publishing/publisher.ts'
import { threadedDestination } from '../../publishing/threaded-destination.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { programUrl } from '../../shared/programs.ts'
import { createServerTrust } from '../../shared/server-trust.ts'
import type { Meters } from '../../telemetry/meters.ts'
import { publicKafkaSecurityOf } from '../event-log/kafka-security.ts'
import type { ProcessTelemetry } from '../telemetry/process-telemetry.ts'

/** Publishes what is in the log to other systems while this coordinator writes it. */
export interface Publishing {
  /** Called before each scrape: sets how far the publishing is behind. */
  observe(meters: Meters): void
  stop(): Promise<void>
}

type To = 'open_lineage' | 'public_topic'

interface Target {
  readonly to: To
  readonly publication: Publication
  readonly settings: DestinationSettings
}

interface Base {
  readonly config: Config
  readonly log: EventLog
  readonly pool: pg.Pool
  readonly secret: string
  readonly telemetry: ProcessTelemetry
}

/** The same failure is logged again only after this time. */
const SAY_AGAIN_MS = 60_000
/** The thread gets no settings of this process: they hold secrets. */
const THREAD_ENV: NodeJS.ProcessEnv = {}

/**
 * @param begin where publishing starts if it never ran before
 * @throws ExitError 64 for a file of the settings that cannot be read
 */
export function startPublishing(base: Base, begin: Checkpoint): Publishing {
  const running = publishingTargets(base, begin.logId).map((target) => ({
    to: target.to,
    publisher: startTarget(base, begin, target),
  }))
  return {
    observe(meters) {
      meters.onScrape(() => {
        for (const { to, publisher } of running) meters.set('publishingLag', { to }, publisher.lagMillis() / 1000)
      })
    },
    async stop() {
      await Promise.all(running.map(({ publisher }) => publisher.stop()))
    },
  }
}

/**
 * The targets to which the configuration publishes events.
 * @throws ExitError 64 for a file of the settings that cannot be read
 */
export function publishingTargets(
  { config, secret }: Pick<Base, 'config' | 'secret'>,
  logId: string,
): readonly Target[] {
  const { publishing } = config
  const lineage = lineageSettings(publishing)
  const targets: Target[] = []
  if (lineage)
    targets.push({
      to: 'open_lineage',
      publication: openLineage({
        namespace: publishing.openLineageNamespace ?? `quipu://${encodeURIComponent(config.environment)}`,
        statements: publishing.openLineageStatements,
        key: deriveKey(secret, 'lineage-jobs'),
      }),
      settings: lineage,
    })
  const { publicKafkaBrokers: brokers, publicKafkaTopic: topic, publicKafkaRetentionMs: retentionMs } = publishing
  if (brokers.length > 0)
    targets.push({
      to: 'public_topic',
      publication: publicFeed({ logId, texts: publishing.publicKafkaTexts }),
      settings: { kind: 'topic', brokers, topic, retentionMs, ...publicKafkaSecurityOf(config) },
    })
  return targets
}

function lineageSettings(publishing: Config['publishing']): DestinationSettings | undefined {
  const { openLineageUrl: url, openLineageFile: path } = publishing
  if (url !== undefined) {
    const { openLineageApiKeyFile: apiKeyFile, openLineageCaFile: caFile } = publishing
    // Read here once, so that an error shows at the start.
    createServerTrust({ tlsCaFile: caFile })
    return { kind: 'server', url, apiKeyFile, caFile }
  }
  return path === undefined ? undefined : { kind: 'file', path }
}

function startTarget(
  { log, pool, telemetry }: Base,
  begin: Checkpoint,
  { to, publication, settings }: Target,
): Publisher {
  const { logger } = telemetry
  let saidAt = -Infinity
  return startPublisher({
    name: to,
    log,
    begin,
    checkpoints: publishedCheckpoints(
      async (text, values) => (await pool.query<Record<string, unknown>>(text, [...values])).rows,
    ),
    publication,
    destination: threadedDestination(programUrl('publishing/destination-thread'), settings, THREAD_ENV),
    onOutcome: (result, count) => telemetry.meters().count('published', { to, result }, count),
    onTrouble(what, reason) {
      if (what === 'left_out')
        return logger.error(
          'publishing.trouble',
          { to, err: reason },
          'The receiver refused an event: it is not published',
        )
      if (performance.now() - saidAt < SAY_AGAIN_MS) return
      saidAt = performance.now()
      logger.warn('publishing.trouble', { to, err: reason }, 'Events cannot be published; the coordinator tries again')
    },
    onEnd: (error) =>
      logger.error('publishing.trouble', { to, err: error }, 'Publishing stopped: the event log is a different one'),
  })
}
