import { loadConfig } from '../config/load-config.ts'
import type { Finding } from '../events/audit/finding.ts'
import { EventLogError } from '../events/event-log.ts'
import { verifyLog, type AuditSummary } from '../readmodels/audit/verify-log.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { eventLogOf, recordStoreOf } from './event-log-of.ts'
import { openDatabase } from './open-database.ts'

const USAGE = `usage: quipu audit verify [--read-models] [--json] [settings]

Walks the event log from its first record and prints a line for each thing that is wrong: its kind, stream/sequence,
place in the log, and what it is. A server may run meanwhile.

  --read-models   also folds the log into tables of its own and compares those that serve
  --json          a JSON object a line; the last one is the summary

Exit code 0: nothing was found. 1: something was. quipu --help has the settings, which say where the log is.
`

const FOUND = 1

/**
 * `quipu audit verify`: whether the log is as it was written.
 * @returns the exit code
 */
export async function auditCommand(argv: readonly string[]): Promise<number> {
  const [verb, ...rest] = argv
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  if (verb !== 'verify') throw new ExitError(exitCodes.configuration, 'What to do? quipu audit verify')
  const json = rest.includes('--json')
  const readModels = rest.includes('--read-models')
  const settings = rest.filter((one) => one !== '--json' && one !== '--read-models')
  const config = loadConfig(settings, process.env)
  const database = await openDatabase(config)
  const store = await recordStoreOf(config, database.url)
  const log = readModels ? await eventLogOf(config, database.url, {}) : undefined
  const onFinding = (finding: Finding): void => {
    process.stdout.write(json ? `${JSON.stringify(finding)}\n` : `${lineOf(finding)}\n`)
  }
  try {
    const { partitions } = await store.open()
    await log?.open()
    const summary = await verifyLog({
      store,
      partitions,
      database: { connectionString: database.url },
      ...(log && { compareWith: log }),
      onFinding,
    })
    process.stdout.write(json ? `${JSON.stringify({ summary })}\n` : `${textOf(summary)}\n`)
    return summary.findings > 0 ? FOUND : 0
  } catch (error) {
    if (error instanceof EventLogError) throw new ExitError(exitCodes.dependency, error.message)
    throw error
  } finally {
    await log?.close()
    await store.close()
    await database.close()
  }
}

function lineOf({ kind, stream, sequence, place, what }: Finding): string {
  const event = stream === undefined ? '-' : `${stream}/${sequence ?? '?'}`
  return `${kind}  ${event}  ${place ?? '-'}  ${what}`
}

function textOf({ findings, records, events, queries, open, tables }: AuditSummary): string {
  const found = findings === 0 ? 'Nothing found' : `${findings} findings`
  const compared = tables === 0 ? '' : `, ${tables} tables compared`
  return `${found} in ${records} records, ${events} events, ${queries} queries (${open} open)${compared}`
}
