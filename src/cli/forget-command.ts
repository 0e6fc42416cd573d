import { parseArgs } from 'node:util'
import { loadConfig } from '../config/load-config.ts'
import { forgetQuery, type ForgetOutcome } from '../coordinator/system/forget-query.ts'
import { EventLogError, Unforgettable } from '../events/event-log.ts'
import { migrate } from '../events/postgres/migrate.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isQueryId, type QueryId } from '../shared/ids.ts'
import { withWriter } from '../processes/event-log/with-writer.ts'
import { eventLogOf } from '../processes/event-log/event-log-of.ts'
import { createLoneFollower } from '../processes/event-log/lone-follower.ts'
import { openDatabase } from './open-database.ts'
import { userName } from './server-address.ts'

const USAGE = `usage: quipu forget --query <id> [--by <name>] [settings]

Takes all data of an ended query out of the event log and the read models: its text, user, plan, figures, errors and
result pages. That it was there stays, and so do the hashes: quipu audit verify finds nothing. Asking again is harmless.
A server may run meanwhile; then it does the work.

  --query <id>   which
  --by <name>    who asks for it, as the event DataForgotten tells (default: the user of this shell)

quipu --help has the settings, which say where the log is.
`

/**
 * `quipu forget`: a query's data leaves the log.
 * @returns the exit code
 */
export async function forgetCommand(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const { queryId, by, settings } = readFlags(argv)
  const config = loadConfig(settings, process.env)
  const database = await openDatabase(config)
  const log = await eventLogOf(config, database.url, {})
  // In Kafka streams are found by the read models.
  const follower = config.kafkaBrokers.length > 0 ? createLoneFollower(log, database.url) : undefined
  try {
    await migrate({ connectionString: database.url })
    await log.open()
    await follower?.reach()
    const outcome = await withWriter(
      { log, config, databaseUrl: database.url },
      {
        ask: async (post) => outcomeOf(await post(`/v1/query/${queryId}/forget`, { by })),
        async write(journal) {
          await follower?.start()
          const outcome = await forgetQuery({ log, journal }, queryId, by)
          await follower?.reach()
          return outcome
        },
      },
    )
    process.stdout.write(`${textOf(queryId, outcome)}\n`)
    return 0
  } catch (error) {
    if (error instanceof Unforgettable) throw new ExitError(exitCodes.configuration, error.message)
    if (error instanceof EventLogError) throw new ExitError(exitCodes.dependency, error.message)
    throw error
  } finally {
    await follower?.stop()
    await log.close()
    await database.close()
  }
}

/** The two flags that are no settings. */
function readFlags(argv: readonly string[]) {
  const options = { query: { type: 'string' }, by: { type: 'string' } } as const
  const { tokens, values } = parseArgs({ args: [...argv], options, strict: false, tokens: true })
  const own = new Set<number>()
  for (const token of tokens)
    if (token.kind === 'option' && Object.hasOwn(options, token.name)) {
      own.add(token.index)
      if (token.value !== undefined && !token.inlineValue) own.add(token.index + 1)
    }
  const { query: queryId, by } = values
  if (typeof queryId !== 'string' || !isQueryId(queryId))
    throw new ExitError(exitCodes.configuration, `--query: '${String(queryId ?? '')}' is no query id`)
  const settings = argv.filter((_, index) => !own.has(index))
  return { queryId, by: typeof by === 'string' ? by : userName(), settings }
}

async function outcomeOf(answer: Response): Promise<ForgetOutcome> {
  const body = (await answer.json().catch(() => ({}))) as { events?: number; detail?: string }
  if (answer.status === 404) return { kind: 'unknown' }
  if (answer.ok && body.events !== undefined) return { kind: 'forgotten', events: body.events }
  const code = answer.status === 409 ? exitCodes.configuration : exitCodes.dependency
  throw new ExitError(code, `The coordinator refused: ${body.detail ?? `status ${answer.status}`}`)
}

function textOf(queryId: QueryId, outcome: ForgetOutcome): string {
  switch (outcome.kind) {
    case 'unknown':
      throw new ExitError(exitCodes.configuration, `There is no query ${queryId}`)
    case 'open':
      throw new ExitError(exitCodes.configuration, `Query ${queryId} has not ended: cancel it first`)
    case 'forgotten':
      return outcome.events === 0
        ? `Query ${queryId} was forgotten before`
        : `Query ${queryId} is forgotten: ${outcome.events} events lost their data`
  }
}
