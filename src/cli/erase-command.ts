import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../config/load-config.ts'
import { checkOrder } from '../erasure/check-order.ts'
import { carryOut, type EraseDeps } from '../erasure/erase.ts'
import { SubjectUnreadable, type ErasureOrder, type ErasureResult, type Remainder } from '../erasure/erasure-store.ts'
import { previewErasure, type Preview } from '../erasure/preview.ts'
import { searchFor, subjectSchema } from '../erasure/subject.ts'
import { EventLogError, type EventLog } from '../events/event-log.ts'
import { openErasing, type Erasing } from '../processes/event-log/erasing.ts'
import { withWriter, type SendToWriter } from '../processes/event-log/with-writer.ts'
import { loadClusterSecret } from '../security/cluster-secret.ts'
import { EngineError, ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import type { ServerAnswer } from '../shared/http-client.ts'
import { parseJson } from '../shared/parse-json.ts'
import { splitFlags } from './command-flags.ts'
import { openForCommand, type CommandDeps } from './open-for-command.ts'
import { userName } from './server-address.ts'

const USAGE = `usage: quipu erase (--user <name> | --value <text>) [options] [settings]
       quipu erase verify (--user <name> | --value <text>) [settings]

Removes the data of every query of a user, or of every query whose text, session, messages, plan or kept results contain a
value, and of the events about log-ins, refusals and acts that name the user or contain the value: from the event log, the
read models and the archives. Afterwards it searches every location again, and prints how often it found the user or the value
there. Hashes stay, so quipu audit verify finds nothing wrong. If a coordinator runs, it does the work; if it is killed, the
next one continues.

  --user <name>    erases this user
  --value <text>   erases this text, written in exactly this way; at least three letters or digits
  --preview        counts what would be removed, and removes nothing
  --mentions       also erases queries of other users that mention the user, and recorded texts of rule files
  --reason <text>  is recorded; must not contain the user or the value
  --by <name>      the user to record in the events (default: the user of this shell)
  --yes            does not ask for a confirmation
  --json           prints JSON

quipu erase verify only searches, and removes nothing. It needs no running server.

Exit code 0: nothing is left. 1: something is left, and the lines say where. quipu --help lists the settings. They name the
log.
`

const REMAINS = 1

const OPTIONS = {
  user: { type: 'string', multiple: true },
  value: { type: 'string', multiple: true },
  preview: { type: 'boolean' },
  mentions: { type: 'boolean' },
  reason: { type: 'string' },
  by: { type: 'string' },
  yes: { type: 'boolean' },
  json: { type: 'boolean' },
} as const

interface Flags {
  readonly verify: boolean
  readonly order: ErasureOrder
  readonly preview: boolean
  readonly by: string
  readonly yes: boolean
  readonly json: boolean
  readonly settings: readonly string[]
}

/**
 * `quipu erase`: removes everything about a user or with a value, and proves it.
 * @returns the exit code
 */
export async function eraseCommand(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const flags = readFlags(argv)
  const config = loadConfig(flags.settings, process.env)
  return openForCommand(config, async (command) => {
    const log = await command.log()
    await command.migrated()
    const secret = loadClusterSecret(config.dataDir, config.sharedSecret)
    const erasing = openErasing({ config, secret, connection: command.database, log })
    try {
      return await runErase({ command, log, erasing, flags })
    } finally {
      await erasing.close()
    }
  })
}

interface Opened {
  readonly command: CommandDeps
  readonly log: EventLog
  readonly erasing: Erasing
  readonly flags: Flags
}

async function runErase(opened: Opened): Promise<number> {
  const { erasing, flags } = opened
  const { subject, mentions } = flags.order
  if (flags.verify) {
    const { locations } = await erasing.prove(subject)
    print(flags, { locations }, locations.map(locationLine))
    return locations.some(({ found }) => found > 0) ? REMAINS : 0
  }
  refuseWrong(flags.order)
  if (flags.preview || !flags.yes) {
    const found = await previewErasure(erasing.logs, { search: searchFor(subject), mentions })
    if (flags.preview) {
      print(flags, { found }, previewLines(found))
      return 0
    }
    await confirm(previewLines(found))
  }
  const result = await erase(opened)
  print(flags, { result }, resultLines(result))
  return result.remains.length > 0 ? REMAINS : 0
}

async function erase(opened: Opened): Promise<ErasureResult> {
  const { command, log, erasing, flags } = opened
  const { config, databaseUrl } = command
  // Finds a log in Kafka by its read models, and says whether an earlier erasure was recorded.
  const follower = command.follower(log)
  await follower.reach()
  return withWriter(
    { log, config, databaseUrl },
    {
      ask: (send) => askCoordinator(send, flags),
      beforeClaim: () => beAlone(command),
      async write(journal) {
        await follower.start()
        const deps = erasing.deps({ journal, projected: () => follower.reach() })
        for (const { id } of await erasing.store.open()) await continueErasure(deps, id)
        const id = randomUUID()
        await erasing.store.add(id, flags.order, { by: flags.by })
        return carryOut(deps, id).catch((error: unknown) => {
          if (!(error instanceof EventLogError)) throw error
          const next = `The next coordinator, or the next quipu erase, continues erasure ${id}`
          throw new ExitError(exitCodes.dependency, `${error.message}. ${next}`)
        })
      },
    },
  )
}

/**
 * Refuses to run beside another command that erases: that command would stop half-way. The connection holds the lock
 * until this command ends.
 */
async function beAlone({ readModels }: CommandDeps): Promise<void> {
  const query = await readModels()
  const [row] = await query(`select pg_try_advisory_lock(hashtext('quipu erase')) as held`, [])
  if (row?.['held'] !== true)
    throw new ExitError(exitCodes.configuration, 'Another quipu erase runs: wait until it has ended')
}

/** An erasure that cannot continue must not keep the others from running. */
async function continueErasure(deps: EraseDeps, id: string): Promise<void> {
  try {
    await carryOut(deps, id)
  } catch (error) {
    if (!(error instanceof SubjectUnreadable)) throw error
    process.stderr.write(`${error.message}\n`)
  }
}

const LOOK_AGAIN_MS = 200

async function askCoordinator(send: SendToWriter, { order, by }: Flags): Promise<ErasureResult> {
  const { subject, mentions, reason } = order
  const begun = await send('/v1/erasure', { ...subject, mentions, reason, by })
  if (begun.status !== 202) throw refusedBy(begun)
  const { erasureId } = parseJson(begun.text) as { erasureId: string }
  for (;;) {
    const answer = await stateFrom(send, erasureId)
    if (answer.status !== 200) throw refusedBy(answer)
    const { result, failure } = parseJson(answer.text) as { result?: ErasureResult; failure?: string }
    if (result) return result
    if (failure !== undefined)
      throw new ExitError(
        exitCodes.dependency,
        `Erasure ${erasureId} failed, and the coordinator tries again: ${failure}`,
      )
    await sleep(LOOK_AGAIN_MS)
  }
}

/** A killed coordinator is replaced within seconds. */
const AWAY_MS = 60_000

/** Asks again while no coordinator answers, because the next one continues the erasure. */
async function stateFrom(send: SendToWriter, erasureId: string): Promise<ServerAnswer> {
  for (const until = performance.now() + AWAY_MS; ; await sleep(LOOK_AGAIN_MS)) {
    try {
      const answer = await send(`/v1/erasure/${erasureId}`, undefined, 'GET')
      if (answer.status !== 503 || performance.now() > until) return answer
    } catch (error) {
      if (performance.now() > until)
        throw new ExitError(
          exitCodes.dependency,
          `No coordinator answers: ${(error as Error).message}. The next one continues erasure ${erasureId}`,
        )
    }
  }
}

function refusedBy({ status, text }: ServerAnswer): ExitError {
  const { detail } = (parseJson(text) ?? {}) as { detail?: string }
  const code = status === 400 || status === 409 ? exitCodes.configuration : exitCodes.dependency
  return new ExitError(code, `The coordinator refused: ${detail ?? `status ${status}`}`)
}

function refuseWrong(order: ErasureOrder): void {
  try {
    checkOrder(order)
  } catch (error) {
    if (error instanceof EngineError) throw new ExitError(exitCodes.configuration, error.message)
    throw error
  }
}

function readFlags(argv: readonly string[]): Flags {
  const verify = argv[0] === 'verify'
  const { flags, settings } = splitFlags(verify ? argv.slice(1) : argv, OPTIONS)
  const { reason, by } = flags
  for (const name of ['preview', 'mentions', 'yes', 'json'] as const)
    if (typeof flags[name] === 'string') throw new ExitError(exitCodes.configuration, `--${name} takes no value`)
  const [user, value] = [onlyOne('user', flags.user), onlyOne('value', flags.value)]
  const given = { ...(user !== undefined && { user }), ...(value !== undefined && { value }) }
  const parsed = subjectSchema.safeParse(given)
  if (!parsed.success) {
    const isOne = (user === undefined) !== (value === undefined)
    const wrong = parsed.error.issues.map(({ message }) => message).join('; ')
    throw new ExitError(
      exitCodes.configuration,
      isOne ? `The text to erase is not accepted: ${wrong}` : 'Give either --user or --value',
    )
  }
  if (reason !== undefined && typeof reason !== 'string')
    throw new ExitError(exitCodes.configuration, '--reason needs a text')
  return {
    verify,
    order: { subject: parsed.data, mentions: flags.mentions === true, ...(reason !== undefined && { reason }) },
    preview: flags.preview === true,
    by: typeof by === 'string' ? by : userName(),
    yes: flags.yes === true,
    json: flags.json === true,
    settings,
  }
}

/** The value of a flag that may be given once. @throws ExitError 64 for several, so that none is left out silently */
function onlyOne<T>(name: string, [first, ...more]: readonly T[] = []): T | undefined {
  if (more.length === 0) return first
  throw new ExitError(exitCodes.configuration, `Give --${name} once: run the command for each ${name}`)
}

/** @throws ExitError 64 unless a person at the terminal agrees */
async function confirm(lines: readonly string[]): Promise<void> {
  if (!process.stdin.isTTY)
    throw new ExitError(exitCodes.configuration, 'Nothing was removed: give --yes, or first --preview')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await terminal.question(`${lines.join('\n')}\nThis cannot be undone. Remove the data? (yes) `)
    if (answer.trim() !== 'yes') throw new ExitError(exitCodes.configuration, 'Nothing was removed')
  } finally {
    terminal.close()
  }
}

function print({ json }: Flags, data: unknown, lines: readonly string[]): void {
  process.stdout.write(json ? `${JSON.stringify(data)}\n` : `${lines.join('\n')}\n`)
}

function previewLines({ queries, records, kept, mentions }: Preview): readonly string[] {
  return [
    `queries whose data would be removed: ${queries}`,
    `other events whose data would be removed: ${countsText(records)}`,
    `events that stay: ${countsText(kept)}`,
    `queries of other users that mention the user and stay: ${mentions}`,
  ]
}

function countsText(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([type, count]) => `${count} ${type}`)
  return parts.length === 0 ? '0' : parts.join(', ')
}

function resultLines({ queries, records, waiting, searched, remains }: ErasureResult): readonly string[] {
  return [
    `Data was removed. Queries: ${queries}, other events: ${records}`,
    ...(waiting.length > 0 ? [`Not ended, so not removed: ${waiting.join(', ')}`] : []),
    remains.length === 0
      ? `Nothing is left in ${searched} locations`
      : `Of ${searched} locations, something is left in:`,
    ...remains.map(locationLine),
  ]
}

function locationLine({ location, found, until, why }: Remainder): string {
  const details =
    found === 0 ? [] : [until === undefined ? '' : `until ${until}`, why ?? ''].filter((one) => one !== '')
  return `${location}: ${found}${details.length > 0 ? ` (${details.join('; ')})` : ''}`
}
