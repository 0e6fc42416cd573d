import { parseArgs } from 'node:util'
import { isQueryId, type QueryId } from '../shared/ids.ts'
import { wrongFlags } from './command-flags.ts'
import { askCalled, callServer, SERVER_USAGE, serverFlags } from './called-server.ts'
import { reasonOf } from './statement-client.ts'

const USAGE = `usage: quipu kill [options] <query id>

Ends a query: your own, or another user's if the access rules allow it. The query's error shows the message. The event log
records who killed it.

${SERVER_USAGE}
  --message <text>    the reason, shown in the query's error

Exit code 1: the query was not killed. It had ended, it does not exist, or you may not kill it.
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
  if (id === undefined || others.length > 0) throw new Error('Give exactly one query id: quipu kill <query id>')
  if (!isQueryId(id)) throw new Error(`'${id}' is not a query id`)
  return id
}
