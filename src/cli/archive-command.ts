import { loadConfig } from '../config/load-config.ts'
import { fromText } from '../config/setting.ts'
import { ArchiveDamaged } from '../events/archive/archived-records.ts'
import { PERIOD_RECORDS } from '../events/archive/manifest.ts'
import { archiveLog, type ArchivedLog } from '../processes/event-log/archive-log.ts'
import { anchorPaths } from '../processes/event-log/anchor-paths.ts'
import { archivesOf } from '../processes/event-log/archives-of.ts'
import { withWriter } from '../processes/event-log/with-writer.ts'
import { loadAnchorKey } from '../security/anchor-key.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { splitFlags } from './command-flags.ts'
import { openForCommand, type CommandDeps } from './open-for-command.ts'
import { userName } from './server-address.ts'

const USAGE = `usage: quipu archive --older-than <age> [--by <name>] [settings]

Moves old records from the event log to its archive. The command copies the records, reads the copy back, compares it, and
only then deletes them from the log. It first finishes what an interrupted call began. It refuses to run while a coordinator
writes the log: a coordinator archives by itself.

  --older-than <age>  moves records older than this (30d, 12h …). Records that open queries need stay, and also records
                      that no anchor signs yet
  --by <name>         the user to record in the events LogArchived and LogDropped (default: the user of this shell)

quipu --help lists the settings. They name the log and the archive.
`

/**
 * `quipu archive`: moves the log's first records to its archive.
 * @returns the exit code
 */
export async function archiveCommand(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const { flags, settings } = splitFlags(argv, { 'older-than': { type: 'string' }, by: { type: 'string' } })
  const age = ageOf(flags['older-than'])
  const by = typeof flags.by === 'string' ? flags.by : userName()
  const config = loadConfig(settings, process.env)
  const done = await openForCommand(config, (parts) => archive(parts, age, by))
  process.stdout.write(`${textOf(done)}\n`)
  return 0
}

function ageOf(flag: string | boolean | undefined): number {
  const age = typeof flag === 'string' ? fromText('duration', flag) : undefined
  if (typeof age !== 'number')
    throw new ExitError(exitCodes.configuration, '--older-than needs an age such as 30d or 12h')
  return age
}

async function archive(deps: CommandDeps, age: number, by: string): Promise<ArchivedLog> {
  const { config, databaseUrl } = deps
  await deps.migrated()
  const log = await deps.log()
  const { store } = await deps.records({ withKeys: true })
  const { dropper } = store
  if (!dropper)
    throw new ExitError(exitCodes.configuration, 'This event log cannot delete records, so they cannot be archived')
  const follower = deps.follower(log)
  return withWriter(
    { log, config, databaseUrl },
    {
      ask: () =>
        Promise.reject(
          new ExitError(
            exitCodes.configuration,
            'A coordinator writes the event log and archives it by itself (settings archiveAfterMs and logRecords)',
          ),
        ),
      async write(journal, epoch) {
        await follower.start()
        await follower.reach()
        const { logId } = await log.tip()
        const done = await archiveLog(
          {
            log,
            epoch,
            journal,
            store,
            dropper,
            archive: archivesOf(config)(logId),
            query: await deps.readModels(),
            key: loadAnchorKey(anchorPaths(config).key).public,
            by,
          },
          {
            before: new Date(Date.now() - age).toISOString(),
            keepRecords: undefined,
            mostRecords: PERIOD_RECORDS,
            leastRecords: 1n,
            leastMs: 0,
          },
        )
        await follower.reach()
        return done
      },
    },
  ).catch((error: unknown) => {
    if (error instanceof ArchiveDamaged) throw new ExitError(exitCodes.dependency, error.message)
    throw error
  })
}

function textOf({ archived, dropped }: ArchivedLog): string {
  if (dropped.length === 0) return 'Nothing to archive'
  const records = dropped.reduce((sum, period) => sum + period.records, 0)
  const finished = dropped.length - archived.length
  const before = finished > 0 ? `; ${finished} periods of an earlier call were finished` : ''
  return `${archived.length} periods archived; ${records} records left the event log${before}`
}
