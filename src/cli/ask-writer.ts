import { loadConfig } from '../config/load-config.ts'
import { withWriter } from '../processes/event-log/with-writer.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { parseJson } from '../shared/parse-json.ts'
import { openForCommand } from './open-for-command.ts'

/**
 * Puts something at the coordinator that writes the log, with the key of the cluster's processes.
 * @param settings arguments that say where the log is
 * @param without the message where no coordinator runs
 * @throws ExitError 64 when the coordinator knows no such thing, 69 when it refuses, does not answer, or none runs
 */
export async function putAtWriter(
  settings: readonly string[],
  { path, body, without }: { readonly path: string; readonly body: unknown; readonly without: string },
): Promise<void> {
  const config = loadConfig(settings, process.env)
  await openForCommand(config, async (parts) => {
    const log = await parts.log()
    await withWriter(
      { log, config, databaseUrl: parts.databaseUrl },
      {
        async ask(send) {
          const { status, text } = await send(path, body, 'PUT')
          if (status === 200) return
          const { detail } = (parseJson(text) ?? {}) as { detail?: string }
          const code = status === 404 ? exitCodes.configuration : exitCodes.dependency
          throw new ExitError(code, `The coordinator refused: ${detail ?? `status ${status}`}`)
        },
        write() {
          throw new ExitError(exitCodes.dependency, without)
        },
      },
    )
  })
}
