import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { loadConfig, type Config } from '../config/load-config.ts'
import type { Finding } from '../events/audit/finding.ts'
import { EventLogError } from '../events/event-log.ts'
import { recordAuditRun } from '../readmodels/audit/audit-runs.ts'
import { verifyLog, type AuditSummary } from '../readmodels/audit/verify-log.ts'
import { publicKeyPath, readPublicKeys } from '../security/anchor-key.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { readAnchorFile } from '../processes/event-log/anchor-export.ts'
import { anchorPaths } from '../processes/event-log/anchor-paths.ts'
import { dataKeysOf, eventLogOf, recordStoreOf } from '../processes/event-log/event-log-of.ts'
import { openDatabase } from './open-database.ts'

const USAGE = `usage: quipu audit verify [options] [settings]

Walks the event log from its first record and prints a line for each thing that is wrong: its kind, stream/sequence,
place in the log, and what it is. A server may run meanwhile.

  --anchors <file>      exported anchors that the log must agree with (default: the anchor file of the settings)
  --public-key <file>   whose signatures are believed (default: that beside the anchor key of the settings)
  --read-models         also folds the log into tables of its own and compares those that serve
  --json                a JSON object a line; the last one is the summary

Exit code 0: nothing was found. 1: something was. 2: the audit could not be made. quipu --help has the settings,
which say where the log is.
`

const FOUND = 1
const COULD_NOT = 2

/** The flags that are no settings. */
const OPTIONS = {
  anchors: { type: 'string' },
  'public-key': { type: 'string' },
  'read-models': { type: 'boolean' },
  json: { type: 'boolean' },
} as const

/**
 * `quipu audit verify`: whether the log is as it was written.
 * @returns the exit code
 */
export async function auditCommand(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  try {
    return await verify(argv)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    // One that went wrong must not be taken for one that found something.
    process.stderr.write(`quipu: ${error instanceof ExitError ? error.message : error.stack}\n`)
    return COULD_NOT
  }
}

async function verify([verb, ...rest]: readonly string[]): Promise<number> {
  if (verb !== 'verify') throw new ExitError(exitCodes.configuration, 'What to do? quipu audit verify')
  const { flags, settings } = splitFlags(rest)
  const { json = false } = flags
  const config = loadConfig(settings, process.env)
  const exported = await anchorsOf(config, flags.anchors)
  const keys = keysOf(config, flags['public-key'])
  const database = await openDatabase(config)
  const store = await recordStoreOf(config, database.url)
  const log = flags['read-models'] ? await eventLogOf(config, database.url, {}) : undefined
  const held = await dataKeysOf(config, database.url)
  const findings: Finding[] = []
  const onFinding = (finding: Finding): void => {
    findings.push(finding)
    process.stdout.write(json ? `${JSON.stringify(finding)}\n` : `${lineOf(finding)}\n`)
  }
  try {
    const { partitions } = await store.open()
    await log?.open()
    await held?.keys.open()
    await held?.keys.refresh()
    const summary = await verifyLog({
      store,
      partitions,
      database: { connectionString: database.url },
      ...(exported && { exported }),
      ...(keys && { keys }),
      ...(log && { compareWith: log }),
      ...(held && { dataKeys: held.keys }),
      onFinding,
    })
    await recordAuditRun({ connectionString: database.url }, findings).catch((error: unknown) =>
      process.stderr.write(`quipu: metrics will not tell of this audit: ${String(error)}\n`),
    )
    process.stdout.write(json ? `${JSON.stringify({ summary })}\n` : `${textOf(summary)}\n`)
    return summary.findings > 0 ? FOUND : 0
  } catch (error) {
    if (error instanceof EventLogError) throw new ExitError(exitCodes.dependency, error.message)
    throw error
  } finally {
    await log?.close()
    await store.close()
    await held?.close()
    await database.close()
  }
}

/** What is not one of the flags above is a setting, with its value. */
function splitFlags(argv: readonly string[]) {
  const { tokens, values } = parseArgs({ args: [...argv], options: OPTIONS, strict: false, tokens: true })
  const own = new Set<number>()
  for (const token of tokens)
    if (token.kind === 'option' && Object.hasOwn(OPTIONS, token.name)) {
      own.add(token.index)
      if (token.value !== undefined && !token.inlineValue) own.add(token.index + 1)
    }
  for (const name of ['anchors', 'public-key'] as const)
    if (Object.hasOwn(values, name) && typeof values[name] !== 'string')
      throw new ExitError(exitCodes.configuration, `--${name}: which file?`)
  const flags = values as { anchors?: string; 'public-key'?: string; 'read-models'?: boolean; json?: boolean }
  return { flags, settings: argv.filter((_, index) => !own.has(index)) }
}

async function anchorsOf(config: Config, named: string | undefined) {
  try {
    const anchors = await readAnchorFile(named ?? anchorPaths(config).file)
    if (!anchors && named !== undefined) throw new Error(`There is no file ${named}`)
    return anchors
  } catch (error) {
    throw new ExitError(exitCodes.configuration, (error as Error).message)
  }
}

function keysOf(config: Config, named: string | undefined) {
  if (named !== undefined) return readPublicKeys(named)
  const path = publicKeyPath(anchorPaths(config).key)
  return existsSync(path) ? readPublicKeys(path) : undefined
}

function lineOf({ kind, stream, sequence, place, what }: Finding): string {
  const event = stream === undefined ? '-' : `${stream}/${sequence ?? '?'}`
  return `${kind}  ${event}  ${place ?? '-'}  ${what}`
}

function textOf({ findings, records, events, queries, open, tables, anchors, signatures }: AuditSummary): string {
  const found = findings === 0 ? 'Nothing found' : `${findings} findings`
  const compared = tables === 0 ? '' : `, ${tables} tables compared`
  const signed = anchors > 0 && signatures === 0 ? ', their signatures not looked at: no key' : ''
  return `${found} in ${records} records, ${events} events, ${queries} queries (${open} open), ${anchors} anchors${signed}${compared}`
}
