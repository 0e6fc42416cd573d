import { Fault, type AttackFamily } from './attack-case.ts'
import { endpointsOf, messageOf, targetOf } from './endpoint-attacks.ts'
import { runStatement, sessionHeaders } from './statement.ts'

/** A text that only its owner may read. */
const CANARY = 'a-text-of-somebody-else'

/** The targets that need no authentication: status of the server and log-in. */
const OPEN = /^\/(v1\/(info|status)|oauth2|ui\/(log-in|log-out|style)|favicon|openapi\.json|metrics)/

/** Requests about a query of another user, without a credential or with a wrong or forged one. */
export const strangers: AttackFamily = {
  name: 'strangers',
  weight: 150,
  needs: 'guard',
  async run(context) {
    const { random, bed, wire } = context
    const other = bed.known!.other
    const owner = { ...sessionHeaders, 'x-trino-user': 'somebody', authorization: other }
    const text = `SELECT '${CANARY}' AS c, nationkey FROM nation${random.pick(['', ' WHERE 1 / nationkey > 9'])}`
    const posted = await wire.ask(`${bed.coordinators[0].url}/v1/statement`, { body: text, headers: owner })
    if (posted.status !== 200) throw new Fault(`a statement of somebody known: ${posted.status} ${posted.text}`)
    const { id, nextUri } = JSON.parse(posted.text) as { id: string; nextUri: string }
    const password = random.pick(['', 'open sesame', CANARY, 'x'.repeat(5_000)])
    const authorization = random.pick([
      '',
      'Basic',
      // No case logs in as this user: guesses from an address delay even correct log-ins of the same user from there.
      `Basic ${Buffer.from(`third:${password}`).toString('base64')}`,
      `Basic ${Buffer.from(`nobody:${password}`).toString('base64')}`,
      `Bearer ${random.pick(['', bed.bearer.slice(1), 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJzb21lYm9keSJ9.'])}`,
      `Bearer quipu~${Buffer.from(random.pick(['', CANARY])).toString('base64url')}`,
    ])
    const { headers, body } = messageOf(context)
    const lies = {
      ...headers,
      'x-trino-user': 'somebody',
      ...random.pick([{}, { 'x-quipu-relayed-for': 'somebody' }, { cookie: `__Host-quipu=${CANARY}` }]),
      authorization,
    }
    const endpoint = random.pick(await endpointsOf(context))
    const target = random.chance(0.3)
      ? new URL(nextUri).pathname
      : targetOf({ ...endpoint, path: endpoint.path.replace('{queryId}', id) }, context)
    const { method } = endpoint
    const { url } = random.pick(bed.coordinators)
    if (endpoint.path === '/v1/events' && !target.includes(id)) return
    const answer = await wire.ask(url, {
      method,
      target,
      headers: lies,
      ...(['GET', 'HEAD'].includes(method) ? {} : { body }),
    })
    const what = `${method} ${target.slice(0, 120)} by a stranger`
    if (`${JSON.stringify(answer.headers)}${answer.text}`.includes(CANARY)) throw new Fault(`${what} tells of a query`)
    if (answer.status < 400 && !OPEN.test(target) && answer.status !== 304 && !isRedirect(answer.status)) {
      throw new Fault(`${what}: ${answer.status} ${answer.text.slice(0, 200)}`)
    }
    // The owner can still run statements.
    const ran = await runStatement(context, text, owner)
    if (!ran) throw new Fault(`a statement of somebody known is refused after ${what}`)
  },
}

/** Whether a status is a redirect, for example to the log-in page. */
function isRedirect(status: number): boolean {
  return status >= 300 && status < 400
}
