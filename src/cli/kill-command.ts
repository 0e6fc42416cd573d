import { parseArgs } from 'node:util'
import { isQueryId, type QueryId } from '../shared/ids.ts'
import { wrongFlags } from './command-flags.ts'
import { askCalled, callServer, SERVER_USAGE, serverFlags } from './called-server.ts'
import { reasonOf } from './statement-client.ts'

const USAGE = `usage: quipu kill [options] <query id>

Ends a query, your own or one that the rules let you kill. Its error tells the message; the event log tells who did it.

${SERVER_USAGE}
  --message <text>    why, as the query's error tells it

Exit code 1 when the query was not killed: it had ended, there is none, or it is not yours to kill.
`

const EXIT_NOT_KILLED = 1

/**
 * `quipu kill`: ends a query, with a message to its user.
 * @returns the exit code
 */
export async function killCommand(argv: readonly string[]): Promise<number> {
  const { queryId, values } = parse(argv)
  if (queryId === undefined) {
    process.stdout.write(USAGE)
    return 0
  }
  const server = callServer(values)
  try {
    const { status, text } = await askCalled(server, 'quipu kill', `/v1/query/${queryId}/killed`, {
      method: 'PUT',
      body: values.message ?? '',
      headers: { 'content-type': 'text/plain; charset=utf-8', accept: 'application/json' },
    })
    if (status !== 202) throw new Error(`Query ${queryId} was not killed: ${reasonOf(text)} (${status})`)
    process.stdout.write(`Query ${queryId} was killed\n`)
    return 0
  } catch (error) {
    process.stderr.write(`quipu: ${(error as Error).message}\n`)
    return EXIT_NOT_KILLED
  } finally {
    server.http.close()
  }
}

/** Parses the arguments; without an id if the user asked for help. @throws ExitError 64 */
function parse(argv: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: { ...serverFlags, message: { type: 'string' }, help: { type: 'boolean' } },
      allowPositionals: true,
    })
    return { values, queryId: values.help ? undefined : queryIdOf(positionals) }
  } catch (error) {
    throw wrongFlags(error, 'quipu kill')
  }
}

function queryIdOf([id, ...others]: readonly string[]): QueryId {
  if (id === undefined || others.length > 0) throw new Error('One query at a time: quipu kill <query id>')
  if (!isQueryId(id)) throw new Error(`'${id}' is no query id`)
  return id
}
