import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const CACHE = join(homedir(), '.cache', 'quipu')
const CLI = 'io.trino:trino-cli:476:jar:executable'
const PYTHON_PACKAGES = ['trino==0.340.0', 'presto-python-client==0.8.4']

export interface Finished {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Says aloud that a client is missing; under CI that is a failure. */
function missing(what: string, error: unknown): undefined {
  const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
  if (process.env['CI'] === 'true') throw new Error(`${what} is missing: ${reason}`)
  console.warn(`SKIPPED: no ${what} (${reason})`)
  return undefined
}

/** The published Trino CLI 476, fetched by Maven once; undefined where that cannot be. */
export async function trinoCli(): Promise<((args: readonly string[]) => Promise<Finished>) | undefined> {
  const jar = join(CACHE, 'trino-cli', 'trino-cli-476-executable.jar')
  try {
    if (!existsSync(jar)) {
      mkdirSync(join(CACHE, 'trino-cli'), { recursive: true })
      await run(
        'mvn',
        ['-q', '-B', 'dependency:copy', `-Dartifact=${CLI}`, `-DoutputDirectory=${join(CACHE, 'trino-cli')}`],
        {
          timeout: 300_000,
        },
      )
    }
    return (args) => finished('java', ['-jar', jar, ...args])
  } catch (error) {
    return missing('Trino CLI 476', error)
  }
}

/** A Python with the published clients, in an environment of its own; undefined where that cannot be. */
export async function pythonClients(): Promise<
  ((script: string, args: readonly string[]) => Promise<Finished>) | undefined
> {
  const python = join(CACHE, 'python', 'bin', 'python')
  try {
    if (!existsSync(python)) {
      mkdirSync(CACHE, { recursive: true })
      await run('python3', ['-m', 'venv', join(CACHE, 'python')], { timeout: 120_000 })
    }
    await run(python, ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', ...PYTHON_PACKAGES], {
      timeout: 300_000,
    })
    return (script, args) => finished(python, ['-c', script, ...args])
  } catch (error) {
    return missing('Python with the Trino client', error)
  }
}

export async function finished(command: string, args: readonly string[]): Promise<Finished> {
  try {
    const { stdout, stderr } = await run(command, [...args], { timeout: 120_000, maxBuffer: 256 * 1024 * 1024 })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const failed = error as { code?: number; stdout?: string; stderr?: string; message: string }
    if (typeof failed.code !== 'number') throw error
    return { code: failed.code, stdout: failed.stdout ?? '', stderr: failed.stderr ?? '' }
  }
}
