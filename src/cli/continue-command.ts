import { loadConfig, type Config } from '../config/load-config.ts'
import { ArchiveDamaged } from '../events/archive/archived-records.ts'
import type { PeriodManifest } from '../events/archive/manifest.ts'
import { anchorPaths } from '../processes/event-log/anchor-paths.ts'
import { archivesOf } from '../processes/event-log/archives-of.ts'
import { closeLog, continueLog } from '../processes/event-log/continue-log.ts'
import { takeOverQueryArchive } from '../processes/event-log/query-archive-of.ts'
import { withWriter } from '../processes/event-log/with-writer.ts'
import { loadAnchorKey } from '../security/anchor-key.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { splitFlags } from './command-flags.ts'
import { openForCommand, type CommandDeps } from './open-for-command.ts'
import { userName } from './server-address.ts'

const USAGE = `usage: quipu continue [--by <name>] [settings]

Moves the event log from Postgres to Kafka. The command archives the whole log in Postgres. Then it begins the topic of the
settings with an event that names the end of the old log. All coordinators must be stopped, and no query may be open. If the
command is interrupted, run it again: it continues.

  --by <name>  the user to record in the event LogContinued (default: the user of this shell)

quipu --help lists the settings. They name the database (log and read models), the archive's folder and the brokers.
`

/**
 * `quipu continue`: continues the log in Postgres with a log in Kafka.
 * @returns the exit code
 */
export async function continueCommand(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const { flags, settings } = splitFlags(argv, { by: { type: 'string' } })
  const by = typeof flags.by === 'string' ? flags.by : userName()
  const config = loadConfig(settings, env)
  if (config.kafkaBrokers.length === 0)
    throw new ExitError(exitCodes.configuration, 'The settings name no Kafka brokers for the new log: set kafkaBrokers')
  try {
    const last = await openForCommand({ ...config, kafkaBrokers: [] }, (parts) => close(parts, config))
    const isNew = await openForCommand(config, async (parts) => {
      const log = await parts.log()
      const begun = await continueLog({ log, last, query: await parts.readModels(), by })
      await takeOverQueryArchive(config, last.logId, (await log.tip()).logId)
      return begun
    })
    process.stdout.write(
      isNew
        ? `Topic ${config.kafkaTopic} continues log ${last.logId}, which is wholly archived\n`
        : `Topic ${config.kafkaTopic} already continues log ${last.logId}\n`,
    )
    return 0
  } catch (error) {
    if (error instanceof ArchiveDamaged) throw new ExitError(exitCodes.dependency, error.message)
    throw error
  }
}

async function close(deps: CommandDeps, config: Config): Promise<PeriodManifest> {
  await deps.migrated()
  const log = await deps.log()
  const { store } = await deps.records()
  const { logId } = await log.tip()
  if (logId === '') throw new ExitError(exitCodes.configuration, 'Postgres holds no event log to continue')
  const archive = archivesOf(config)(logId)
  const query = await deps.readModels()
  const key = loadAnchorKey(anchorPaths(config).key)
  const { at } = await log.tip()
  const archived = (await archive.reread()).at(-1)
  // A further claim would write after the end of the archived log.
  if (archived?.to.every(({ offset }, partition) => BigInt(offset) === at[partition]?.offset)) return archived
  const follower = deps.follower(log)
  return withWriter(
    { log, config, databaseUrl: deps.databaseUrl },
    {
      ask: () =>
        Promise.reject(new ExitError(exitCodes.configuration, 'A coordinator writes the event log: stop it first')),
      async write() {
        await follower.start()
        await follower.reach()
        return closeLog({ log, store, archive, query, key })
      },
    },
  )
}
