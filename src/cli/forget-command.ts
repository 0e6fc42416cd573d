import { loadConfig } from '../config/load-config.ts'
import { forgetQuery, type ForgetOutcome } from '../coordinator/system/forget-query.ts'
import { Unforgettable } from '../events/event-log.ts'
import type { ServerAnswer } from '../shared/http-client.ts'
import { parseJson } from '../shared/parse-json.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isQueryId, type QueryId } from '../shared/ids.ts'
import { withWriter } from '../processes/event-log/with-writer.ts'
import { splitFlags } from './command-flags.ts'
import { openForCommand, type CommandDeps } from './open-for-command.ts'
import { userName } from './server-address.ts'

const USAGE = `usage: quipu forget --query <id> [--by <name>] [settings]

Removes all data of an ended query from the event log and the read models: its text, user, plan, figures, errors and result
pages. Its events stay without their data, and their hashes stay, so quipu audit verify finds nothing wrong. A second call
changes nothing. If a coordinator runs, it does the work.

  --query <id>   the query
  --by <name>    the user to record in the event DataForgotten (default: the user of this shell)

quipu --help lists the settings. They name the log.
`

/**
 * `quipu forget`: removes a query's data from the log.
 * @returns the exit code
 */
export async function forgetCommand(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const { queryId, by, settings } = readFlags(argv)
  const config = loadConfig(settings, process.env)
  const outcome = await openForCommand(config, (parts) => forget(parts, queryId, by))
  process.stdout.write(`${textOf(queryId, outcome)}\n`)
  return 0
}

async function forget(deps: CommandDeps, queryId: QueryId, by: string): Promise<ForgetOutcome> {
  const { config, databaseUrl } = deps
  await deps.migrated()
  const log = await deps.log()
  // A log in Kafka finds streams by the read models.
  const follower = config.kafkaBrokers.length > 0 ? deps.follower(log) : undefined
  await follower?.reach()
  try {
    return await withWriter(
      { log, config, databaseUrl },
      {
        ask: async (post) => outcomeOf(await post(`/v1/query/${queryId}/forget`, { by })),
        async write(journal) {
          await follower?.start()
          const outcome = await forgetQuery({ log, journal }, queryId, { by })
          await follower?.reach()
          return outcome
        },
      },
    )
  } catch (error) {
    if (error instanceof Unforgettable) throw new ExitError(exitCodes.configuration, error.message)
    throw error
  }
}

/** Reads the two flags that are not settings. */
function readFlags(argv: readonly string[]) {
  const { flags, settings } = splitFlags(argv, { query: { type: 'string' }, by: { type: 'string' } })
  const { query: queryId, by } = flags
  if (typeof queryId !== 'string' || !isQueryId(queryId))
    throw new ExitError(exitCodes.configuration, `--query: '${String(queryId ?? '')}' is not a query id`)
  return { queryId, by: typeof by === 'string' ? by : userName(), settings }
}

function outcomeOf(answer: ServerAnswer): ForgetOutcome {
  const body = (parseJson(answer.text) ?? {}) as { events?: number; detail?: string }
  if (answer.status === 404) return { kind: 'unknown' }
  if (answer.status === 200 && body.events !== undefined) return { kind: 'forgotten', events: body.events }
  const code = answer.status === 409 ? exitCodes.configuration : exitCodes.dependency
  throw new ExitError(code, `The coordinator refused: ${body.detail ?? `status ${answer.status}`}`)
}

function textOf(queryId: QueryId, outcome: ForgetOutcome): string {
  switch (outcome.kind) {
    case 'unknown':
      throw new ExitError(exitCodes.configuration, `Query ${queryId} does not exist`)
    case 'open':
      throw new ExitError(exitCodes.configuration, `Query ${queryId} has not ended: cancel it first`)
    case 'forgotten':
      return outcome.events === 0
        ? `Query ${queryId} was already forgotten`
        : `Query ${queryId} is forgotten: data of ${outcome.events} events was removed`
  }
}
