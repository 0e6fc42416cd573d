import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { loadConfig } from '../config/load-config.ts'
import type { ForgottenEpochs } from '../execution/api/task.ts'
import { readEpochs } from '../execution/worker/epoch-guard.ts'
import { noteForgottenEpochs } from '../execution/worker/forgotten-epochs.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { leaveRoot } from './leave-root.ts'
import { userName } from './server-address.ts'
import { isHeld } from '../supervisor/data-folder-lock.ts'

const USAGE = `usage: quipu reset-epoch [--data-dir DIR] [settings]

Deletes the epochs of coordinators that the workers of a data folder have stored. The workers must be stopped. Use it when a
worker refuses the coordinator that writes the event log (its log line is epoch.disbelieved; see docs/runbooks.md). This is
safe: the event log itself admits only one writer. A worker's epochs only keep its tasks from an old coordinator. The command
notes its user in the data folder. When the worker runs again, it reports the note, and the event log records it.
`

/**
 * `quipu reset-epoch`: removes the files of epochs of the workers below a data folder.
 * @returns the exit code
 * @throws ExitError 69 while Quipu runs on the folder
 */
export async function resetEpochCommand(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const config = loadConfig(argv, process.env)
  const dataDir = resolve(config.dataDir)
  if (isHeld(dataDir, 'owner') || isHeld(dataDir, 'standby'))
    throw new ExitError(exitCodes.dependency, `Quipu runs on ${dataDir}: stop it first`)
  // Asked before the process leaves root: the user who runs the command.
  const by = userName()
  const at = new Date().toISOString()
  if (existsSync(dataDir)) await leaveRoot(config, (line) => void process.stderr.write(`quipu: ${line}\n`))
  const files = epochFiles(dataDir)
  for (const file of files) {
    const epochs = epochsIn(file)
    // Recorded before the file is removed, so that the record is never missing.
    noteForgottenEpochs(dirname(file), { id: randomUUID(), at, host: hostname(), by, epochs: epochs ?? [] })
    rmSync(file)
    process.stdout.write(`${file}: forgot ${describe(epochs)}\n`)
  }
  if (files.length === 0) process.stdout.write(`No worker of ${dataDir} has stored an epoch\n`)
  return 0
}

/** The files of `quipu worker` on this folder, and of the workers that `quipu start` runs. */
function epochFiles(dataDir: string): string[] {
  if (!existsSync(dataDir)) return []
  const workers = readdirSync(dataDir).filter((name) => /^(standby-)?worker-\d+$/.test(name))
  return ['', ...workers].map((name) => join(dataDir, name, 'epoch')).filter((file) => existsSync(file))
}

/** The epochs in the file; undefined if it holds none. */
function epochsIn(file: string): ForgottenEpochs['epochs'] | undefined {
  try {
    return [...readEpochs(file)]
  } catch (error) {
    if (error instanceof ExitError) return undefined
    throw error
  }
}

function describe(epochs: ForgottenEpochs['epochs'] | undefined): string {
  if (!epochs) return 'a file without a readable epoch'
  return epochs.map(({ logId, epoch }) => `epoch ${epoch} of ${logId || 'an unnamed log'}`).join(', ') || 'nothing'
}
