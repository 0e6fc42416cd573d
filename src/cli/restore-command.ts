import { loadConfig, type Config } from '../config/load-config.ts'
import { ArchiveDamaged } from '../events/archive/archived-records.ts'
import { copyLog, restoreLog, type RestoreTarget } from '../events/archive/restore-log.ts'
import type { KeyRing } from '../events/data-keys/key-ring.ts'
import { keyNameInText, tombstoneText } from '../events/envelope.ts'
import type { StoredRecord } from '../events/record-store.ts'
import { EventLogError } from '../events/event-log.ts'
import { MigrationError } from '../events/postgres/migrate.ts'
import { withPostgresTarget } from '../events/postgres/restore-target.ts'
import { keysOfTopics, recordStoreOf } from '../processes/event-log/event-log-of.ts'
import { archivedLogs, archivesOf } from '../processes/event-log/archives-of.ts'
import { kafkaSecurityOf } from '../processes/event-log/kafka-security.ts'
import { keysOfArchive } from '../readmodels/audit/recorded-anchors.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isQueryId } from '../shared/ids.ts'
import { believedKeys } from './believed-keys.ts'
import { splitFlags } from './command-flags.ts'

const USAGE = `usage: quipu restore --into <where> [--period <n> | --until <n>] [--log <id>] [settings]

Restores an event log from its archive. The restored records are checked against the signed anchors. The original log is not
needed and not changed.

  --into <target>      postgres://…: a database without an event log. topic: the topic of the settings, which must be empty
                       or hold what an interrupted restore wrote
  --period <n>         restores only period n: the new log begins with it and reads earlier records from the archive
  --until <n>          restores the first n periods (default: all)
  --from topic         copies the whole log from Kafka, as the settings name it, instead of the archive alone. No
                       coordinator may run
  --log <id>           the log to restore, if the archive's folder holds several
  --public-key <file>  a trusted key; can be repeated (default: the key beside the anchor key of the settings)

quipu --help lists the settings. They name the archive's folder (archiveFolder) and the brokers.
`

const OPTIONS = {
  into: { type: 'string' },
  period: { type: 'string' },
  until: { type: 'string' },
  from: { type: 'string' },
  log: { type: 'string' },
  'public-key': { type: 'string', multiple: true },
} as const

/**
 * `quipu restore`: restores periods of an archive as a log.
 * @param env variables with settings
 * @returns the exit code
 */
export async function restoreCommand(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const { flags, settings } = splitFlags(argv, OPTIONS)
  const config = loadConfig(settings, env)
  const [period, until] = [numberOf('period', flags.period), numberOf('until', flags.until)]
  if (period !== undefined && until !== undefined) throw wrong('Use either --period or --until, not both')
  if (typeof flags.into !== 'string') throw wrong('--into is missing: give postgres://… or topic')
  if (flags.from !== undefined && (flags.from !== 'topic' || flags.into === 'topic' || (period ?? until) !== undefined))
    throw wrong('--from takes only topic, needs --into postgres://…, and allows neither --period nor --until')
  const trusted = believedKeys(config, flags['public-key'])
  try {
    if (flags.from !== undefined) {
      const records = await copyTopic(config, flags.into)
      process.stdout.write(`Copied ${records} records of topic ${config.kafkaTopic} into the log in Postgres\n`)
      return 0
    }
    const archive = archivesOf(config)(await logOf(config, flags.log))
    const keys = trusted && (await keysOfArchive(archive, trusted))
    const last = period ?? until ?? (await archive.reread()).length
    const first = period ?? 1
    const periods = await withTarget(config, flags.into, (target) =>
      restoreLog({ archive, first, last, canEnd: isQueryId, keys, target }),
    )
    const records = periods.reduce((sum, one) => sum + one.records, 0)
    process.stdout.write(`Restored ${records} records of ${periods.length} periods\n`)
    return 0
  } catch (error) {
    if (error instanceof ArchiveDamaged || error instanceof EventLogError || error instanceof MigrationError)
      throw new ExitError(exitCodes.dependency, error.message)
    throw error
  }
}

async function withTarget<T>(config: Config, into: string, work: (target: RestoreTarget) => Promise<T>): Promise<T> {
  if (isPostgres(into)) return intoPostgres(config, into, work)
  if (into !== 'topic') throw wrong(`--into ${into}: give postgres://… or topic`)
  if (config.kafkaBrokers.length === 0) throw wrong('--into topic needs Kafka brokers: set kafkaBrokers')
  const { withTopicTarget } = await import('../events/kafka/restore-target.ts')
  const store = await recordStoreOf(config, config.databaseUrl ?? '')
  try {
    await store.open()
    const { kafkaBrokers: brokers, kafkaTopic: topic } = config
    return await withTopicTarget({ brokers, topic, ...kafkaSecurityOf(config) }, store, work)
  } finally {
    await store.close()
  }
}

function isPostgres(into: string): boolean {
  return /^postgres(ql)?:/.test(into)
}

/**
 * Restores into Postgres. A log in Kafka brings the keys of its queries along. Data whose key was forgotten stays
 * forgotten.
 */
async function intoPostgres<T>(config: Config, into: string, work: (target: RestoreTarget) => Promise<T>): Promise<T> {
  const { ring, copyInto, close } = await keysOfTopics(config)
  try {
    return await withPostgresTarget({ connectionString: into }, async (target) => {
      await copyInto(into)
      return work({
        ...target,
        put: (partition, records) =>
          target.put(
            partition,
            records.map((record) => withoutForgotten(record, ring)),
          ),
      })
    })
  } finally {
    await close()
  }
}

/** @throws ArchiveDamaged when the record's key is missing, so that it cannot be read */
function withoutForgotten(record: StoredRecord, keys: KeyRing): StoredRecord {
  const name = keyNameInText(record.text)
  const state = name === undefined ? 'held' : keys.stateOf(name)
  if (state === 'missing')
    throw new ArchiveDamaged(
      `Data key ${name} is missing: neither the database of the settings nor data-keys.jsonl in its data folder has it`,
    )
  return state === 'forgotten' ? { ...record, text: tombstoneText(record.text) } : record
}

async function copyTopic(config: Config, into: string): Promise<bigint> {
  if (config.kafkaBrokers.length === 0) throw wrong('--from topic needs Kafka brokers: set kafkaBrokers')
  if (!isPostgres(into)) throw wrong('--from topic needs --into postgres://…')
  const store = await recordStoreOf(config, config.databaseUrl ?? '')
  try {
    const { partitions } = await store.open()
    if (partitions !== 1)
      throw wrong('--from topic: the topic has several partitions, but a log in Postgres has exactly one')
    if ((await store.epochBefore?.()) !== undefined)
      throw wrong('--from topic: the log continues an earlier log, which this command cannot restore')
    return await intoPostgres(config, into, (target) => copyLog(store, target))
  } finally {
    await store.close()
  }
}

async function logOf(config: Config, named: string | boolean | undefined): Promise<string> {
  const logs = await archivedLogs(config)
  if (typeof named === 'string' && logs.includes(named)) return named
  if (named === undefined && logs.length === 1) return logs[0]!
  const there = logs.length === 0 ? 'the archive holds no log' : `the archive holds ${logs.join(', ')}`
  throw wrong(`--log: name a log of the archive: ${there}`)
}

function numberOf(flag: string, text: string | boolean | undefined): number | undefined {
  if (text === undefined) return undefined
  if (typeof text === 'string' && /^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw wrong(`--${flag} needs a number from 1 to 999999`)
}

function wrong(message: string): ExitError {
  return new ExitError(exitCodes.configuration, message)
}
