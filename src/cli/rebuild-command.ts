import { loadConfig } from '../config/load-config.ts'
import { mendQuery } from '../readmodels/mend-query.ts'
import { rebuildReadModels, type Rebuilt } from '../readmodels/rebuild.ts'
import { systemClock } from '../shared/clock.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isQueryId, type QueryId } from '../shared/ids.ts'
import { archivesOf } from '../processes/event-log/archives-of.ts'
import { logsBefore } from '../processes/event-log/logs-before.ts'
import { withWriter } from '../processes/event-log/with-writer.ts'
import { splitFlags } from './command-flags.ts'
import { openForCommand, type CommandDeps } from './open-for-command.ts'
import { userName } from './server-address.ts'

const USAGE = `usage: quipu rebuild [--query <id>] [settings]

Rebuilds the read models from the event log. The command fills new tables and replaces the old ones at the end. A server may
run at the same time.

  --query <id>  rebuilds only the rows of one query from its stored events: use it after the cause of a dead letter is fixed

quipu --help lists the settings. They name the log and the read models.
`

/**
 * `quipu rebuild`: rebuilds the read models from the event log, with or without a running server. With `--query ID` it
 * rebuilds only the rows of one query from its stored events, after a dead letter was dealt with.
 * @returns the exit code
 */
export async function rebuildCommand(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const { flags, settings } = splitFlags(argv, { query: { type: 'string' } })
  const queryId = queryOf(flags.query)
  await openForCommand(loadConfig(settings, process.env), (parts) =>
    queryId === undefined ? rebuild(parts) : mend(queryId, parts),
  )
  return exitCodes.drained
}

async function rebuild(deps: CommandDeps): Promise<void> {
  await deps.migrated()
  const log = await deps.log()
  const progress = process.stderr.isTTY ? showProgress : undefined
  const rebuilt = await rebuildReadModels({
    log,
    before: await logsBefore(log, archivesOf(deps.config)),
    database: deps.database,
    clock: systemClock,
    ...(progress && { onProgress: progress }),
  })
  const seconds = rebuilt.milliseconds / 1000
  const rate = Math.round(rebuilt.events / Math.max(seconds, 0.001))
  process.stdout.write(`Rebuilt from ${rebuilt.events} events in ${seconds.toFixed(2)} s (${rate} a second)\n`)
  await recordRebuild(deps, rebuilt)
  if (rebuilt.deadLetters > 0) process.stdout.write(`${rebuilt.deadLetters} events could not be projected\n`)
}

/** The report of a rebuild of all queries, or of one. */
type RebuildReport = Pick<Rebuilt, 'events' | 'milliseconds' | 'deadLetters'>

/** Records ProjectionRebuilt. The tables are in use even if this fails. */
async function recordRebuild(
  { config, databaseUrl, log: openLog }: CommandDeps,
  { events, milliseconds, deadLetters }: RebuildReport,
  stream?: QueryId,
): Promise<void> {
  const report = { events, milliseconds, deadLetters, by: userName(), ...(stream !== undefined && { stream }) }
  try {
    const log = await openLog()
    await withWriter(
      { log, config, databaseUrl },
      {
        ask: async (post) => {
          const answer = await post('/v1/system/rebuilt', report)
          if (answer.status >= 300) throw new Error(`the coordinator answered ${answer.status}`)
        },
        write: async (journal) => void (await journal.record('ProjectionRebuilt', report)),
      },
    )
  } catch (error) {
    process.stderr.write(`quipu: the rebuild could not be recorded in the event log: ${(error as Error).message}\n`)
  }
}

function queryOf(flag: string | boolean | undefined): QueryId | undefined {
  if (flag === undefined || (typeof flag === 'string' && isQueryId(flag))) return flag
  throw new ExitError(exitCodes.configuration, `--query: '${flag === true ? '' : flag}' is not a query id`)
}

async function mend(queryId: QueryId, deps: CommandDeps): Promise<void> {
  const { database } = deps
  const began = systemClock.monotonicMs()
  const { events, deadLetters } = await mendQuery(database, queryId).catch((error: Error) => {
    throw new ExitError(exitCodes.dependency, `Cannot rebuild the rows of ${queryId}: ${error.message}`)
  })
  if (events === 0) throw new ExitError(exitCodes.configuration, `The event log has no events of query ${queryId}`)
  process.stdout.write(`Rebuilt ${queryId} from ${events} events; ${deadLetters} dead letters resolved\n`)
  const milliseconds = Math.round(systemClock.monotonicMs() - began)
  await recordRebuild(deps, { events, milliseconds, deadLetters: 0 }, queryId)
}

function showProgress(done: number, total: number): void {
  process.stderr.write(`\r${done} of ${total} events\u001b[K${done >= total ? '\n' : ''}`)
}
