import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isNodeId } from '../shared/ids.ts'
import { putAtWriter } from './ask-writer.ts'
import { splitFlags } from './command-flags.ts'
import { userName } from './server-address.ts'

const USAGE = `usage: quipu drain --node <id> [--by <name>] [settings]

Stops a worker after its current work. The worker takes no new tasks and ends when its tasks are no longer needed: running
statements finish, and clients get their remaining rows. The running coordinator sends the request, and the event log records
its user. A second call changes nothing.

  --node <id>    the worker, as /v1/node and system.runtime.nodes list it
  --by <name>    the user to record in the event NodeDrainAsked (default: the user of this shell)

quipu --help lists the settings. They name the log.
`

/**
 * `quipu drain`: makes a worker end after its current work.
 * @returns the exit code
 * @throws ExitError 64 when there is no such worker, 69 when no coordinator runs or the worker does not answer
 */
export async function drainCommand(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const { flags, settings } = splitFlags(argv, { node: { type: 'string' }, by: { type: 'string' } })
  const { node, by } = flags
  if (typeof node !== 'string' || !isNodeId(node))
    throw new ExitError(exitCodes.configuration, `--node: '${String(node ?? '')}' is not a worker id`)
  await putAtWriter(settings, {
    path: `/v1/node/${encodeURIComponent(node)}/state`,
    body: { state: 'SHUTTING_DOWN', by: typeof by === 'string' ? by : userName() },
    without: 'No coordinator runs: only a coordinator can drain a worker',
  })
  process.stdout.write(`${node} takes no new tasks, and ends when its tasks are no longer needed\n`)
  return 0
}
