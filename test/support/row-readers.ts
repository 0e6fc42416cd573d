import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fetchedJar, finished, missing, pythonClients, shortLived, trinoCli, type Finished } from './real-clients.ts'
import { repository } from './repository.ts'
import { testCache, withCached } from './test-cache.ts'

const run = promisify(execFile)
const PROGRAMS = join(repository, 'test', 'support', 'clients')

/** A published client that prints a statement's rows, a line each, its values joined by commas. */
export interface RowReader {
  /** @param base address of a server; the statement's catalog is tpch, its schema tiny */
  read(base: string, sql: string): Promise<Finished>
  /** It asks again when an answer breaks off; the others end with an error of their own then. */
  readonly repeatsBrokenAnswers: boolean
  /** So many answers in a row may fail before it gives up. */
  readonly attempts: number
}

/** Each client by its name; one that cannot be had is told of, and under CI that is a failure. */
export async function rowReaders(): Promise<ReadonlyMap<string, RowReader>> {
  const readers = new Map<string, RowReader>()
  for (const [name, make] of [
    ['Trino CLI 476', cli],
    ['trino-jdbc 476', jdbc],
    ['trino for Python', python],
    ['trino-go-client 1.4.1', go],
  ] as const) {
    const reader = await make()
    if (reader) readers.set(name, reader)
  }
  return readers
}

async function cli(): Promise<RowReader | undefined> {
  const execute = await trinoCli()
  const session = ['--catalog', 'tpch', '--schema', 'tiny', '--output-format', 'CSV_UNQUOTED']
  return (
    execute && {
      read: (base, sql) => execute(['--server', base, ...session, '--execute', sql]),
      repeatsBrokenAnswers: true,
      attempts: Infinity,
    }
  )
}

const SOURCE = join(PROGRAMS, 'StreamRows.java')

async function jdbc(): Promise<RowReader | undefined> {
  const folder = join(testCache, 'trino-jdbc')
  let driver: string
  let classes: string
  try {
    driver = await fetchedJar('io.trino:trino-jdbc:476', 'trino-jdbc', 'trino-jdbc-476.jar')
    // A compiler that wants no more than a runtime.
    const compiler = await fetchedJar('org.eclipse.jdt:ecj:3.33.0', 'trino-jdbc', 'ecj-3.33.0.jar')
    classes = join(
      folder,
      createHash('sha256')
        .update(await readFile(SOURCE))
        .digest('hex')
        .slice(0, 16),
    )
    await withCached(classes, 'ecj', async () => {
      const fresh = `${classes}.${process.pid}`
      await run('java', [...shortLived, '-jar', compiler, '-17', '-d', fresh, SOURCE], { timeout: 120_000 })
      await rename(fresh, classes)
    })
  } catch (error) {
    return missing('JDBC driver of Trino 476', error)
  }
  return {
    read: (base, sql) =>
      finished('java', [
        ...shortLived,
        '-cp',
        `${driver}:${classes}`,
        'StreamRows',
        `${base.replace('http', 'jdbc:trino')}/tpch/tiny`,
        sql,
      ]),
    repeatsBrokenAnswers: true,
    attempts: Infinity,
  }
}

const SCRIPT = `
import sys, trino
host, port = sys.argv[1].split('://')[1].split(':')
cur = trino.dbapi.connect(host=host, port=int(port), user='python', catalog='tpch', schema='tiny').cursor()
cur.execute(sys.argv[2])
for row in cur: print(*row, sep=',')`

async function python(): Promise<RowReader | undefined> {
  const execute = await pythonClients()
  return execute && { read: (base, sql) => execute(SCRIPT, [base, sql]), repeatsBrokenAnswers: false, attempts: 3 }
}

async function go(): Promise<RowReader | undefined> {
  try {
    const built = await run(join(PROGRAMS, 'build-go-client'), { timeout: 600_000 })
    const binary = built.stdout.trim()
    return {
      read: (base, sql) => finished(binary, [`${base.replace('://', '://go@')}?catalog=tpch&schema=tiny`, sql]),
      repeatsBrokenAnswers: false,
      attempts: Infinity,
    }
  } catch (error) {
    return missing('Go client of Trino', error)
  }
}
