import { loadConfig } from '../config/load-config.ts'
import { withWriter } from '../processes/event-log/with-writer.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isNodeId } from '../shared/ids.ts'
import { parseJson } from '../shared/parse-json.ts'
import { splitFlags } from './command-flags.ts'
import { openForCommand } from './open-for-command.ts'
import { userName } from './server-address.ts'

const USAGE = `usage: quipu drain --node <id> [--by <name>] [settings]

Tells a worker to take no new tasks and to end when nobody needs those that it has: running statements finish, and clients
get their remaining rows. The coordinator that runs does it, and the event log has who asked. Asking again is harmless.

  --node <id>    which, as /v1/node and system.runtime.nodes list it
  --by <name>    who asks for it, as the event NodeDrainAsked tells (default: the user of this shell)

quipu --help has the settings, which say where the log is.
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
    throw new ExitError(exitCodes.configuration, `--node: '${String(node ?? '')}' is no name of a worker`)
  const config = loadConfig(settings, process.env)
  const asked = { state: 'SHUTTING_DOWN', by: typeof by === 'string' ? by : userName() }
  await openForCommand(config, async (parts) => {
    const log = await parts.log()
    await withWriter(
      { log, config, databaseUrl: parts.databaseUrl },
      {
        async ask(send) {
          const { status, text } = await send(`/v1/node/${encodeURIComponent(node)}/state`, asked, 'PUT')
          if (status === 200) return
          const { detail } = (parseJson(text) ?? {}) as { detail?: string }
          const code = status === 404 ? exitCodes.configuration : exitCodes.dependency
          throw new ExitError(code, `The coordinator refused: ${detail ?? `status ${status}`}`)
        },
        write() {
          throw new ExitError(exitCodes.dependency, 'No coordinator runs: there is nobody whom a worker would believe')
        },
      },
    )
  })
  process.stdout.write(`${node} takes no new tasks, and ends when nobody needs those that it has\n`)
  return 0
}
