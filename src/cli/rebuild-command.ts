import { loadConfig, type Config } from '../config/load-config.ts'
import { LogChanged, MisconfiguredLog, type EventLog } from '../events/event-log.ts'
import { migrate } from '../events/postgres/migrate.ts'
import { mendQuery } from '../readmodels/mend-query.ts'
import { rebuildReadModels, type Rebuilt } from '../readmodels/rebuild.ts'
import { systemClock } from '../shared/clock.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isQueryId, type QueryId } from '../shared/ids.ts'
import { withWriter } from '../processes/event-log/with-writer.ts'
import { eventLogOf } from '../processes/event-log/event-log-of.ts'
import { openDatabase } from './open-database.ts'

/**
 * `quipu rebuild`: makes the read models anew from the event log, while a server serves or without one. With
 * `--query ID` the rows of one query alone, from its stored events: after a dead letter was dealt with.
 * @returns the exit code
 */
export async function rebuildCommand(argv: readonly string[]): Promise<number> {
  const { queryId, rest } = takeQuery(argv)
  const config = loadConfig(rest, process.env)
  const database = await openDatabase(config)
  try {
    if (queryId === undefined) await rebuild(config, database.url)
    else await mend(queryId, database.url)
    return exitCodes.drained
  } finally {
    await database.close()
  }
}

async function rebuild(config: Config, databaseUrl: string): Promise<void> {
  const connection = { connectionString: databaseUrl }
  await migrate(connection).catch((error: Error) => {
    throw new ExitError(exitCodes.dependency, `Cannot use Postgres: ${error.message}`)
  })
  const log = await eventLogOf(config, databaseUrl, {})
  try {
    await log.open()
    const progress = process.stderr.isTTY ? showProgress : undefined
    const rebuilt = await rebuildReadModels({
      log,
      database: connection,
      clock: systemClock,
      ...(progress && { onProgress: progress }),
    })
    const seconds = rebuilt.milliseconds / 1000
    const rate = Math.round(rebuilt.events / Math.max(seconds, 0.001))
    process.stdout.write(`Rebuilt from ${rebuilt.events} events in ${seconds.toFixed(2)} s (${rate} a second)\n`)
    await tell(config, databaseUrl, log, rebuilt)
    if (rebuilt.deadLetters > 0) process.stdout.write(`${rebuilt.deadLetters} events could not be projected\n`)
  } catch (error) {
    if (error instanceof LogChanged || error instanceof MisconfiguredLog) {
      throw new ExitError(exitCodes.dependency, error.message)
    }
    throw error
  } finally {
    await log.close()
  }
}

/** ProjectionRebuilt; the tables serve whether it is told or not. */
async function tell(
  config: Config,
  databaseUrl: string,
  log: EventLog,
  { events, milliseconds }: Rebuilt,
): Promise<void> {
  try {
    await withWriter(
      { log, config, databaseUrl },
      {
        ask: async (post) => {
          const answer = await post('/v1/system/rebuilt', { events, milliseconds })
          if (!answer.ok) throw new Error(`the coordinator answered ${answer.status}`)
        },
        write: async (journal) => void (await journal.record('ProjectionRebuilt', { events, milliseconds })),
      },
    )
  } catch (error) {
    process.stderr.write(`quipu: the rebuild could not be told to the event log: ${(error as Error).message}\n`)
  }
}

/** The one flag that is no setting. */
function takeQuery(argv: readonly string[]): { queryId: QueryId | undefined; rest: readonly string[] } {
  const at = argv.findIndex((one) => one === '--query' || one.startsWith('--query='))
  if (at < 0) return { queryId: undefined, rest: argv }
  const inline = argv[at]!.startsWith('--query=')
  const queryId = inline ? argv[at]!.slice('--query='.length) : argv[at + 1]
  if (queryId === undefined || !isQueryId(queryId))
    throw new ExitError(exitCodes.configuration, `--query: '${queryId ?? ''}' is no query id`)
  return { queryId, rest: argv.toSpliced(at, inline ? 1 : 2) }
}

async function mend(queryId: QueryId, databaseUrl: string): Promise<void> {
  const { events, deadLetters } = await mendQuery({ connectionString: databaseUrl }, queryId).catch((error: Error) => {
    throw new ExitError(exitCodes.dependency, `The rows of ${queryId} cannot be made: ${error.message}`)
  })
  if (events === 0) throw new ExitError(exitCodes.configuration, `There are no events of query ${queryId}`)
  process.stdout.write(`Rebuilt ${queryId} from ${events} events; ${deadLetters} dead letters are dealt with\n`)
}

function showProgress(done: number, total: number): void {
  process.stderr.write(`\r${done} of ${total} events\u001b[K${done >= total ? '\n' : ''}`)
}
