import { setMaxListeners } from 'node:events'
import { openScratch, type ScratchResults } from '../replay/scratch-results.ts'
import type { CalledServer } from './called-server.ts'
import { makeScratchFolder } from './scratch-folder.ts'
import { openVerdictFile, type VerdictFile } from './verdict-file.ts'

export const EXIT_DIFFERENT = 1
export const EXIT_COULD_NOT_RUN = 2

/** The parts that a command needs to compare results of two servers. */
export interface ComparingDeps {
  readonly scratch: ScratchResults
  readonly lines: VerdictFile
  /** Aborts when the user interrupts the command. */
  readonly stopping: AbortSignal
}

/**
 * Runs a command that compares results, and frees its parts afterwards. Prints the error if it fails.
 * @param json path of the verdict file
 * @param servers whose connections are closed at the end
 * @returns the exit code
 */
export async function runComparing(
  json: string | undefined,
  servers: readonly CalledServer[],
  command: (deps: ComparingDeps) => Promise<number>,
): Promise<number> {
  const stopping = new AbortController()
  // Every request in progress listens to this signal.
  setMaxListeners(0, stopping.signal)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  const folder = makeScratchFolder()
  try {
    const scratch = await openScratch(folder.path)
    const lines = openVerdictFile(json)
    try {
      return await command({ scratch, lines, stopping: stopping.signal })
    } finally {
      lines.close()
      scratch.close()
      for (const server of new Set(servers)) server.http.close()
    }
  } catch (error) {
    process.stderr.write(`quipu: ${(error as Error).message}\n`)
    return EXIT_COULD_NOT_RUN
  } finally {
    folder.remove()
  }
}
