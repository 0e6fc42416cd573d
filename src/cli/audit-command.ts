import { loadConfig, type Config } from '../config/load-config.ts'
import type { Finding } from '../events/audit/finding.ts'
import { countedByKind, recordAuditRun } from '../readmodels/audit/audit-runs.ts'
import { verifyLog, type AuditSummary } from '../readmodels/audit/verify-log.ts'
import { systemClock } from '../shared/clock.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { readAnchorFiles } from '../processes/event-log/anchor-export.ts'
import { anchorPaths } from '../processes/event-log/anchor-paths.ts'
import { archivesOf } from '../processes/event-log/archives-of.ts'
import { queryArchiveFolder } from '../processes/event-log/query-archive-of.ts'
import { sendToWriter } from '../processes/event-log/with-writer.ts'
import { believedKeys } from './believed-keys.ts'
import { filesOf, splitFlags } from './command-flags.ts'
import { openForCommand, type CommandDeps } from './open-for-command.ts'
import { userName } from './server-address.ts'

const USAGE = `usage: quipu audit verify [options] [settings]

Reads the event log from its first record and prints a line for each finding: its kind, stream/sequence, position in the
log, and a description. A server may run at the same time.

  --anchors <path>      exported anchors that the log must match: a file, or a folder with *.jsonl files; can be repeated
                        (default: the anchor file of the settings)
  --public-key <file>   a trusted key; can be repeated (default: the key beside the anchor key of the settings). Keys that
                        the log introduces with a signature of a trusted key are trusted too
  --read-models         also rebuilds the read models in separate tables and compares them with the tables in use
  --json                prints a JSON object on each line; the last one is the summary

Exit code 0: nothing was found. 1: something was found. 2: the audit could not run. quipu --help lists the settings. They
name the log.
`

const FOUND = 1
const COULD_NOT = 2

/** The flags that are not settings. */
const OPTIONS = {
  anchors: { type: 'string', multiple: true },
  'public-key': { type: 'string', multiple: true },
  'read-models': { type: 'boolean' },
  json: { type: 'boolean' },
} as const

/**
 * `quipu audit verify`: checks whether the log is as it was written.
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
    // A failed check must not look like a check that found something.
    process.stderr.write(`quipu: ${error instanceof ExitError ? error.message : error.stack}\n`)
    return COULD_NOT
  }
}

async function verify([verb, ...rest]: readonly string[]): Promise<number> {
  if (verb !== 'verify')
    throw new ExitError(exitCodes.configuration, 'The only audit command is verify: quipu audit verify')
  const { flags, settings } = splitFlags(rest, OPTIONS)
  const json = flags.json === true
  const config = loadConfig(settings, process.env)
  const exported = await anchorsOf(config, filesOf('anchors', flags.anchors))
  const keys = believedKeys(config, flags['public-key'])
  const findings: Finding[] = []
  const onFinding = (finding: Finding): void => {
    findings.push(finding)
    process.stdout.write(json ? `${jsonOf(finding)}\n` : `${lineOf(finding)}\n`)
  }
  const began = systemClock.monotonicMs()
  const summary = await openForCommand(config, async (parts) => {
    const { store, partitions } = await parts.records()
    const log = flags['read-models'] === true ? await parts.log() : undefined
    const dataKeys = await parts.dataKeys()
    const report = await verifyLog({
      store,
      partitions,
      database: parts.database,
      ...(exported && { exported }),
      ...(keys && { keys }),
      ...(log && { compareWith: log }),
      ...(dataKeys && { dataKeys }),
      archiveOf: archivesOf(config),
      queriesFolderOf: (logId) => queryArchiveFolder(config, logId),
      onFinding,
    })
    await recordAuditRun(parts.database, findings).catch((error: unknown) =>
      process.stderr.write(
        `quipu: the metrics do not count this audit, because it could not be stored: ${String(error)}\n`,
      ),
    )
    await reportAudit(parts, findings, report, Math.round(systemClock.monotonicMs() - began))
    return report
  })
  process.stdout.write(json ? `${JSON.stringify({ summary })}\n` : `${textOf(summary)}\n`)
  return summary.findings > 0 ? FOUND : 0
}

/**
 * Lets the coordinator that writes the log record LogVerified. Without a running coordinator the log stays as it is: an
 * audit must not change the log that it checks.
 */
async function reportAudit(
  { config, databaseUrl, log: openLog }: CommandDeps,
  findings: readonly Finding[],
  { records, events, queries, open, tables, periods, anchors, signatures }: AuditSummary,
  milliseconds: number,
): Promise<void> {
  const figures = { records, events, queries, open, tables, periods, anchors, signatures, milliseconds }
  try {
    const send = await sendToWriter({ log: await openLog(), config, databaseUrl })
    const answer = await send?.('/v1/system/verified', {
      by: userName(),
      findings: countedByKind(findings),
      ...figures,
    })
    if (answer && answer.status >= 300) throw new Error(`the coordinator answered ${answer.status}`)
  } catch (error) {
    process.stderr.write(`quipu: the audit could not be recorded in the event log: ${(error as Error).message}\n`)
  }
}

async function anchorsOf(config: Config, named: readonly string[] | undefined) {
  try {
    const anchors = await readAnchorFiles(named ?? [anchorPaths(config).file])
    if (anchors.missing !== undefined && named) throw new Error(`There is no file ${anchors.missing}`)
    return anchors.read
  } catch (error) {
    throw new ExitError(exitCodes.configuration, (error as Error).message)
  }
}

/** The finding as `--json` prints it: its position has the name `place` there. */
function jsonOf(finding: Finding): string {
  const entries = Object.entries(finding).map(([name, value]) => [
    name === 'position' ? 'place' : name,
    value as unknown,
  ])
  return JSON.stringify(Object.fromEntries(entries))
}

function lineOf({ kind, stream, sequence, position, what }: Finding): string {
  const event = stream === undefined ? '-' : `${stream}/${sequence ?? '?'}`
  return `${kind}  ${event}  ${position ?? '-'}  ${what}`
}

function textOf(summary: AuditSummary): string {
  const { findings, records, events, queries, open, tables, periods, anchors, signatures } = summary
  const found = findings === 0 ? 'Nothing found' : `${findings} findings`
  const compared = tables === 0 ? '' : `, ${tables} tables compared`
  const archived = periods === 0 ? '' : `, ${periods} archived periods`
  const signed = anchors > 0 && signatures === 0 ? ', their signatures not checked: no key is known' : ''
  return `${found} in ${records} records, ${events} events, ${queries} queries (${open} open), ${anchors} anchors${signed}${archived}${compared}`
}
