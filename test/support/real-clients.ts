import { execFile } from 'node:child_process'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { archivedClasses, shortLived } from './java.ts'
import { pythonEnvironment } from './python-environment.ts'
import { testCache, withCached } from './test-cache.ts'

const run = promisify(execFile)
const CLI = 'io.trino:trino-cli:476:jar:executable'
const PYTHON_PACKAGES = ['trino==0.340.0', 'presto-python-client==0.8.4']
const DATA_TOOLS = ['dbt-core==1.11.16', 'dbt-trino==1.11.0', 'trino==0.340.0', 'sqlalchemy==2.1.9', 'pandas==3.1.1']

type Environment = Readonly<Record<string, string>>

export interface Finished {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Prints that a client is missing. In CI this is a failure. */
export function missing(what: string, error: unknown): undefined {
  const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
  if (process.env['CI'] === 'true') throw new Error(`${what} is missing: ${reason}`)
  console.warn(`SKIPPED: no ${what} (${reason})`)
  return undefined
}

/** An address that refuses connections. A client that is run with it has loaded nearly all of its classes. */
export const REFUSING = '127.0.0.1:1'

/** The options of `java` that run the published Trino CLI 476, downloaded by Maven once. */
export async function cliProgram(): Promise<readonly string[]> {
  const jar = await fetchedJar(CLI, 'trino-cli', 'trino-cli-476-executable.jar')
  const classes = await archivedClasses(jar.replace('.jar', '.jsa'), (options) =>
    finished('java', [...shortLived, ...options, '-jar', jar, '--server', REFUSING, '--execute', 'SELECT 1']),
  )
  return [...shortLived, ...classes, '-jar', jar]
}

/** The published Trino CLI 476; undefined if the download fails. */
export async function trinoCli(): Promise<
  ((args: readonly string[], env?: Environment) => Promise<Finished>) | undefined
> {
  try {
    const program = await cliProgram()
    return (args, env) => finished('java', [...program, ...args], env)
  } catch (error) {
    return missing('Trino CLI 476', error)
  }
}

/**
 * A published artifact (`group:name:version[:packaging[:classifier]]`), downloaded by Maven once.
 * @param folder the folder in the cache
 * @param name the name of its file
 */
export async function fetchedJar(artifact: string, folder: string, name: string): Promise<string> {
  const jar = join(testCache, folder, name)
  await withCached(jar, 'maven', async () => {
    const fresh = `${join(testCache, folder)}.${process.pid}`
    await mkdir(join(testCache, folder), { recursive: true })
    await run('mvn', ['-q', '-B', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${fresh}`], {
      timeout: 300_000,
    })
    await rename(join(fresh, name), jar)
    await rm(fresh, { recursive: true })
  })
  return jar
}

/** Runs a script of Python. */
export type RunPython = (script: string, args: readonly string[], env?: Environment) => Promise<Finished>

/** A Python environment with the published clients; undefined if it cannot be created. */
export function pythonClients(): Promise<RunPython | undefined> {
  return pythonWith('Python with the Trino client', 'python', PYTHON_PACKAGES)
}

/** A Python environment with dbt, SQLAlchemy and pandas; undefined if it cannot be created. */
export function pythonDataTools(): Promise<RunPython | undefined> {
  return pythonWith('Python with dbt, SQLAlchemy and pandas', 'python-data-tools', DATA_TOOLS)
}

async function pythonWith(what: string, folder: string, packages: readonly string[]): Promise<RunPython | undefined> {
  try {
    const python = join(await pythonEnvironment(folder, packages), 'python')
    return (script, args, env) => finished(python, ['-c', script, ...args], env)
  } catch (error) {
    return missing(what, error)
  }
}

/** @param env variables in addition to those of this process */
export async function finished(
  command: string,
  args: readonly string[],
  env: Environment = {},
  cwd = process.cwd(),
): Promise<Finished> {
  const options = { cwd, timeout: 840_000, maxBuffer: 256 * 1024 * 1024, env: { ...process.env, ...env } }
  try {
    const { stdout, stderr } = await run(command, [...args], options)
    return { code: 0, stdout, stderr }
  } catch (error) {
    const failed = error as { code?: number; stdout?: string; stderr?: string; message: string }
    if (typeof failed.code !== 'number') throw error
    return { code: failed.code, stdout: failed.stdout ?? '', stderr: failed.stderr ?? '' }
  }
}
