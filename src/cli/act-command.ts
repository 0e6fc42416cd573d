import { createInterface } from 'node:readline/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { actKinds, type ActKind } from '../coordinator/system/events.ts'
import { actInfoSchema, actPreviewSchema, type ActInfo, type ActPreview } from '../protocol/acts/act-schemas.ts'
import { internalBearer } from '../security/cluster-secret.ts'
import { isLoopback } from '../shared/loopback.ts'
import { parseJson } from '../shared/parse-json.ts'
import { askCalled, callServer, serverFlags, type CalledServer } from './called-server.ts'
import { wrongFlags } from './command-flags.ts'
import { reasonOf } from './statement-client.ts'
import { tableFormat, valueText } from './table-text.ts'

const USAGE = `usage: quipu act kill | hold | release | rerun | forget <filter> --reason <text> [--yes] [options]
       quipu act list [options]
       quipu act show <act id> [options]
       quipu act stop <act id> [options]

Does the same with many queries. It prints the queries that the filter matches and asks before it begins. The user needs the
right to write system information, and the right to end these queries. An act goes on when this command is interrupted.

  kill         ends open queries; their errors show the reason
  hold         keeps waiting queries from starting until they are released
  release      lets held queries start again
  rerun        runs the statements of ended queries again, as the same users
  forget       removes the data of ended queries from the event log. Without authentication this needs the secret of the
               cluster in QUIPU_SHARED_SECRET
  stop         stops an act: the queries that it has not begun with stay as they are, and its reruns are canceled

Filter; a query must match all of it:

  --user <name>           user that the query runs as       --state <state,…>       QUEUED, RUNNING, FAILED and others
  --source <text>         program of the client             --error <name>          name of the error, such as SYNTAX_ERROR
  --app <name>            program behind the query          --app-object <text>     its dashboard, model and so on
  --app-user <text>       its user                          --tag <text>            client tag
  --group <name>          group of the user                 --resource-group <name> resource group
  --query-type <type>     SELECT, INSERT and others         --plan <route>          local, coordinator or delegated
  --cluster <name>        cluster that runs the query       --table <c.s.t>         table that it reads or writes
  --fingerprint <hash>    shape of the statement            --text <text>           a part of the statement
  --since <time>          created at or after (ISO 8601)    --until <time>          created before
  --query <id>            the query itself; may be repeated
  --all                   no filter: all queries of any age

  --reason <text>     why, for the users and for the record
  --yes               begins without asking
  --server <url>      coordinator (QUIPU_SERVER; default: http://127.0.0.1:8080, or port QUIPU_PORT)
  --login <name>      user of the requests (default: the user of this shell). QUIPU_PASSWORD holds the password, or
                      QUIPU_ACCESS_TOKEN a token. Over plain HTTP they are sent only to this machine
  --ca <file>         certificates (PEM) to verify the server with (QUIPU_TLS_CA_FILE; default: public authorities)

Exit code 1: no query matches, you did not confirm, the server refused the act, or some queries were refused or failed.
`

const EXIT_NOT_DONE = 1
const POLL_MS = 500

/** Flags of the filter, with the names of the REST interface. */
const FILTERS = {
  user: 'user',
  state: 'state',
  source: 'source',
  error: 'error',
  app: 'app',
  'app-object': 'appObject',
  'app-user': 'appUser',
  tag: 'tag',
  group: 'group',
  'resource-group': 'resourceGroup',
  'query-type': 'queryType',
  plan: 'plan',
  cluster: 'cluster',
  table: 'table',
  fingerprint: 'fingerprint',
  text: 'q',
  since: 'since',
  until: 'until',
} as const

/** A filter that all queries match. Without a filter, the server leaves out queries that ended some time ago. */
const ALL = { since: '0001-01-01T00:00:00Z' }

type Filter = Readonly<Record<string, string | readonly string[]>>

interface ActQuestion {
  readonly method?: 'DELETE'
  /** Sent as JSON with a POST. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

type Order =
  | { readonly kind: 'help' | 'list' }
  | { readonly kind: 'show' | 'stop'; readonly actId: string }
  | {
      readonly kind: 'act'
      readonly act: ActKind
      readonly filter: Filter
      readonly reason: string
      readonly yes: boolean
    }

/**
 * `quipu act`: does the same with many queries, after a preview.
 * @returns the exit code
 */
export async function actCommand(argv: readonly string[]): Promise<number> {
  const { order, flags } = parse(argv)
  if (order.kind === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  const server = callServer(flags)
  try {
    switch (order.kind) {
      case 'list':
        printActs(z.array(actInfoSchema).parse(await ask(server, '/v1/act')))
        return 0
      case 'show':
        return printEnd(actInfoSchema.parse(await ask(server, `/v1/act/${order.actId}`)))
      case 'stop':
        return printEnd(
          await ended(server, actInfoSchema.parse(await ask(server, `/v1/act/${order.actId}`, { method: 'DELETE' }))),
        )
      case 'act':
        return await carryOut(server, order)
    }
  } catch (error) {
    process.stderr.write(`quipu: ${(error as Error).message}\n`)
    return EXIT_NOT_DONE
  } finally {
    server.http.close()
  }
}

async function carryOut(
  server: CalledServer,
  { act, filter, reason, yes }: Extract<Order, { kind: 'act' }>,
): Promise<number> {
  const headers = keyFor(server, act)
  const preview = actPreviewSchema.parse(await ask(server, '/v1/act/preview', { body: { act, filter }, headers }))
  printPreview(preview)
  if (preview.matched === 0) return EXIT_NOT_DONE
  if (!yes && !(await confirmed(preview))) return EXIT_NOT_DONE
  const body = { act, filter, reason, token: preview.token }
  const begun = actInfoSchema.parse(await ask(server, '/v1/act', { body, headers }))
  process.stdout.write(`Act ${begun.actId}\n`)
  return printEnd(await ended(server, begun, headers))
}

/** Follows an act to its end. */
async function ended(server: CalledServer, begun: ActInfo, headers = {}): Promise<ActInfo> {
  let info = begun
  while (info.state === 'RUNNING') {
    await sleep(POLL_MS)
    info = actInfoSchema.parse(await ask(server, `/v1/act/${info.actId}`, { headers }))
  }
  return info
}

/** @throws Error with one line when the server refuses */
async function ask(
  server: CalledServer,
  target: string,
  { body, headers, ...rest }: ActQuestion = {},
): Promise<unknown> {
  const json = body === undefined ? rest : { method: 'POST' as const, body: JSON.stringify(body) }
  const { status, text } = await askCalled(server, 'quipu act', target, {
    ...json,
    headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
  })
  if (status !== 200) throw new Error(`${reasonOf(text)} (${status})`)
  return parseJson(text)
}

/** The cluster's key as a header. A server without authentication forgets queries only for callers with this key. */
function keyFor({ url, credentialsFor }: CalledServer, act: ActKind): Record<string, string> {
  const secret = process.env['QUIPU_SHARED_SECRET'] ?? ''
  const { protocol, hostname } = new URL(url)
  const isPrivate = protocol === 'https:' || isLoopback(hostname)
  if (act !== 'forget' || secret === '' || !isPrivate || 'authorization' in credentialsFor(url)) return {}
  return { authorization: `Bearer ${internalBearer(secret)}` }
}

async function confirmed({ act, matched }: ActPreview): Promise<boolean> {
  if (!process.stdin.isTTY) throw new Error('Nothing was done: without a terminal, give --yes')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question(`${act} ${counted(matched)}? [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}

const PREVIEWED = 20

function printPreview({ act, matched, searchedSince, denied, states, users, queries }: ActPreview): void {
  const byState = Object.entries(states).filter(([, count]) => (count ?? 0) > 0)
  process.stdout.write(`${act}: ${counted(matched)}${matched === 0 ? '' : `: ${pairs(byState)}`}\n`)
  if (searchedSince !== undefined)
    process.stdout.write(`The text was searched only in queries created since ${searchedSince}\n`)
  if (denied > 0) process.stdout.write(`Left out, because you may not end them: ${counted(denied)}\n`)
  if (matched === 0) return
  process.stdout.write(`By user: ${pairs(users.map(({ user, queries: count }) => [user, count]))}\n\n`)
  const rows = queries
    .slice(0, PREVIEWED)
    .map((one) => [one.queryId, one.state, one.user, one.query.replaceAll(/\s+/g, ' ').slice(0, 80)])
  const format = tableFormat(['query', 'state', 'user', 'statement'].map(textColumn), rows)
  process.stdout.write(`${[format.header(), ...rows.map(format.row)].join('\n')}\n`)
  if (matched > rows.length) process.stdout.write(`… and ${matched - rows.length} more\n`)
}

function printActs(acts: readonly ActInfo[]): void {
  const rows = acts.map((one) => [
    one.actId,
    one.startTime,
    one.act,
    one.state,
    one.user,
    `${one.done}/${one.matched}`,
    one.reason,
  ])
  const format = tableFormat(['act', 'time', 'kind', 'state', 'user', 'done', 'reason'].map(textColumn), rows)
  process.stdout.write(`${[format.header(), ...rows.map(format.row)].join('\n')}\n`)
}

/** @returns the exit code */
function printEnd({ act, matched, state, done, outcomes, problems }: ActInfo): number {
  process.stdout.write(
    `${act}: ${state === 'RUNNING' ? `${done} of ` : ''}${counted(matched)}: ${pairs(Object.entries(outcomes))}\n`,
  )
  for (const { queryId, outcome, why } of problems) process.stdout.write(`  ${queryId} ${outcome}: ${valueText(why)}\n`)
  const wrong = (outcomes.refused ?? 0) + (outcomes.failed ?? 0)
  return wrong > 0 ? EXIT_NOT_DONE : 0
}

function textColumn(name: string) {
  return { name, type: 'varchar' }
}

function pairs(counts: readonly (readonly [string, number | undefined])[]): string {
  return counts.map(([name, count]) => `${count} ${valueText(name)}`).join(', ')
}

function counted(queries: number): string {
  return queries === 1 ? 'one query' : `${queries} queries`
}

/** Parses the arguments. @throws ExitError 64 */
function parse(argv: readonly string[]) {
  try {
    const text = { type: 'string' } as const
    const filters = Object.fromEntries(Object.keys(FILTERS).map((name) => [name, text])) as Record<
      keyof typeof FILTERS,
      typeof text
    >
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: {
        ...filters,
        query: { type: 'string', multiple: true },
        all: { type: 'boolean' },
        reason: text,
        yes: { type: 'boolean' },
        help: { type: 'boolean' },
        login: text,
        server: serverFlags.server,
        ca: serverFlags.ca,
      },
      allowPositionals: true,
    })
    const { server, ca, login: user } = values
    return { order: orderOf(positionals, values), flags: { server, ca, user } }
  } catch (error) {
    throw wrongFlags(error, 'quipu act')
  }
}

function orderOf(
  [what = '', ...others]: readonly string[],
  values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>,
): Order {
  if (values['help']) return { kind: 'help' }
  const [actId] = others
  if (what === 'show' || what === 'stop') {
    if (actId === undefined || !/^[0-9a-f]{32}$/.test(actId))
      throw new Error(`Give the id of an act: quipu act ${what} <id>`)
    return { kind: what, actId }
  }
  if (others.length > 0) throw new Error(`'${others[0]}' is too much`)
  if (what === 'list') return { kind: 'list' }
  const act = actKinds.find((kind) => kind === what)
  if (!act) throw new Error(`Give kill, hold, release, rerun, forget, list, show or stop, not '${what}'`)
  const given = filterOf(values)
  const isFiltered = Object.keys(given).length > 0
  if (!isFiltered && !values['all']) throw new Error('Give a filter, or --all for all queries')
  const { reason } = values
  if (typeof reason !== 'string' || reason.trim() === '') throw new Error('Give a reason: --reason <text>')
  return { kind: 'act', act, filter: isFiltered ? given : ALL, reason, yes: values['yes'] === true }
}

function filterOf(values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>): Filter {
  const given = Object.entries(FILTERS).flatMap(([flag, name]) => {
    const value = values[flag]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  const { query } = values
  return { ...Object.fromEntries(given), ...(Array.isArray(query) && { queries: query as readonly string[] }) }
}
