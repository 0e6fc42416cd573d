import { once } from 'node:events'
import { parseArgs } from 'node:util'
import type { CloudEvent } from '../events/envelope.ts'
import { eventLine } from './event-line.ts'
import { FeedRefusedError, followEvents } from './event-stream.ts'
import { wrongFlags } from './command-flags.ts'
import { callServer, SERVER_USAGE, serverFlags } from './called-server.ts'

const USAGE = `usage: quipu tail [options]

${SERVER_USAGE}
  --query <id,…>      only events of these queries
  --of-user <name,…>  only events of queries of these users
  --type <name,…>     only events of these types, e.g. QueryFinished,QueryFailed
  --state <name,…>    only events after which their query is in one of these states, e.g. RUNNING
  --after <id>        begin after this event of the log ("beginning": with the first event; default: from now on)
  --json              prints each event as a CloudEvent, one on each line

Prints events until it is interrupted. If the coordinator is away, it tries again; no event is lost or printed twice.
`

const EXIT_REFUSED = 1

/**
 * `quipu tail`: prints the live feed of events, one a line on standard output.
 * @returns the exit code
 */
export async function tailCommand(argv: readonly string[]): Promise<number> {
  const values = parse(argv)
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const server = callServer(values)
  const url = new URL('/v1/events', server.url)
  const filters = { query: values.query, user: values['of-user'], type: values.type, state: values.state }
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) url.searchParams.set(name, value)
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  // Users may run `quipu tail | head`.
  process.stdout.on('error', () => stopping.abort())
  let lost = false
  try {
    const events = followEvents({
      url: url.href,
      http: server.http,
      headers: {
        'X-Engine-User': server.user,
        'X-Engine-Source': 'quipu tail',
        ...server.credentialsFor(url.href),
      },
      after: values.after,
      signal: stopping.signal,
      onLost: (error) => {
        if (!lost) process.stderr.write(`quipu: ${reasonOf(error)}; trying again\n`)
        lost = true
      },
    })
    for await (const { event, data } of events) {
      lost = false
      const line = values.json ? data : eventLine(event, JSON.parse(data) as CloudEvent)
      // A slow reader slows the feed down, so memory does not fill up.
      if (!process.stdout.write(`${line}\n`))
        await once(process.stdout, 'drain', { signal: stopping.signal }).catch(() => {})
    }
    return 0
  } catch (error) {
    if (!(error instanceof FeedRefusedError)) throw error
    process.stderr.write(`quipu: ${error.message}\n`)
    return EXIT_REFUSED
  }
}

function parse(argv: readonly string[]) {
  try {
    const text = { type: 'string' } as const
    const { values } = parseArgs({
      args: [...argv],
      options: {
        ...serverFlags,
        query: text,
        'of-user': text,
        type: text,
        state: text,
        after: text,
        json: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    })
    return values
  } catch (error) {
    throw wrongFlags(error, 'quipu tail')
  }
}

function reasonOf(error: Error): string {
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}
