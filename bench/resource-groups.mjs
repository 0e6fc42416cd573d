// Resource groups: `node bench/resource-groups.mjs` after `npx tsc -p .`. Decisions a second with 1,000 groups: a decision is
// one statement let in (with its signal), put in a queue, or started from it. Then how long it takes to read and use a changed file, and
// what rules of session properties add to a statement.
import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { readPropertyRules, ruledSession } from '../dist/coordinator/dispatch/property-rules.js'
import { readGroupRules, readGroupRulesInSlices } from '../dist/coordinator/dispatch/groups/group-rules.js'
import { ConfiguredGroups } from '../dist/coordinator/dispatch/groups/configured-groups.js'

const GROUPS = 1_000
const RUNNING = 2_000
const STATEMENTS = 20_000

const own = (name, more) => ({ name, hardConcurrencyLimit: 2, maxQueued: 1_000_000, ...more })

/** @param users `template`: one template makes their groups; otherwise each user has a group and a selector of their own */
function fileOf(policy, users) {
  const weight = policy.startsWith('weighted') ? { schedulingWeight: 1 } : {}
  const names = Array.from({ length: GROUPS }, (_, index) => `user-${index}`)
  const subGroups = users === 'template' ? [own('${USER}', weight)] : names.map((name) => own(name, weight))
  const selectors =
    users === 'template'
      ? [{ group: 'all.${USER}' }]
      : names.map((name) => ({ user: `${name}|${name}-[a-z]+`, group: `all.${name}` }))
  const all = { name: 'all', hardConcurrencyLimit: RUNNING, maxQueued: 10_000_000, schedulingPolicy: policy, subGroups }
  return JSON.stringify({ rootGroups: [all], selectors })
}

const NOTHING = { cpuMillis: 0, memoryBytes: 0, scannedBytes: 0 }

function entrant(index) {
  const user = `user-${(index * 7919) % GROUPS}`
  return {
    group: `all.${user}`,
    owner: { user, address: '127.0.0.1' },
    statement: { session: { user, groups: [], clientTags: [], resourceEstimates: {} }, queryType: () => 'SELECT' },
    priority: 1,
    signal: new AbortController().signal,
    recovered: false,
    usage: () => NOTHING,
    moved() {},
  }
}

async function decisions(policy, users) {
  const rules = readGroupRules(fileOf(policy, users))
  const groups = new ConfiguredGroups({ rules: () => rules, memory: () => 1e9, clock: performance_ })
  const running = []
  const waiting = []
  const start = process.cpuUsage()
  for (let index = 0; index < STATEMENTS; index++) {
    const one = entrant(index)
    const place = groups.tryEnter(one)
    if (place) running.push(place)
    else waiting.push(groups.enter(one).place.then((given) => running.push(given)))
    // As many end as come, once it is full.
    if (index % 3 === 0 && running.length > 0) running.shift().release()
    if (index % 50 === 0) await undefined
  }
  while (running.length > 0) {
    running.shift().release()
    await undefined
  }
  await Promise.all(waiting)
  const { user, system } = process.cpuUsage(start)
  const seconds = (user + system) / 1e6
  groups.stop()
  const made = STATEMENTS + waiting.length
  const result = `${Math.round(made / seconds)} a second of CPU, ${waiting.length} of ${STATEMENTS} waited`
  console.log(`decisions, ${GROUPS} groups by ${users}, ${policy}`.padEnd(60), result)
}

const performance_ = { monotonicMs: () => performance.now() }

for (const users of ['template', 'names'])
  for (const policy of ['fair', 'weighted', 'weighted_fair', 'query_priority']) await decisions(policy, users)

{
  const text = fileOf('fair', 'names')
  let rules = readGroupRules(text)
  const groups = new ConfiguredGroups({ rules: () => rules, memory: () => 1e9, clock: performance_ })
  for (let index = 0; index < 10_000; index++) {
    const one = entrant(index)
    if (!groups.tryEnter(one)) groups.enter(one)
  }
  const read = performance.now()
  rules = readGroupRules(text)
  const used = performance.now()
  groups.look()
  let deciding = performance.now() - used
  for (let last = performance.now(); groups.isDeciding; last = performance.now()) {
    await nextLoopPass()
    deciding = Math.max(deciding, performance.now() - last)
  }
  const done = performance.now()
  groups.stop()
  console.log(
    `reload of ${GROUPS} groups and selectors`.padEnd(60),
    `read at once in ${(used - read).toFixed(1)} ms; 10,000 statements decided again in ${(done - used).toFixed(1)} ms,`,
    `longest turn ${deciding.toFixed(1)} ms`,
  )
  const turns = await longestTurn(async (turn) => void (await readGroupRulesInSlices(text, turn)))
  console.log(`the same read in turns`.padEnd(60), `longest turn ${turns.toFixed(1)} ms`)
}

/** Of the event loop, milliseconds, while something goes on. */
async function longestTurn(work) {
  let longest = 0
  let last = performance.now()
  await work(async () => {
    longest = Math.max(longest, performance.now() - last)
    await nextLoopPass()
    last = performance.now()
  })
  return Math.max(longest, performance.now() - last)
}

{
  const rules = readPropertyRules(
    JSON.stringify(
      Array.from({ length: 500 }, (_, n) => ({
        user: `user-${n}|team-${n}-[a-z]+`,
        sessionProperties: { query_max_run_time: `${n + 1}m` },
      })),
    ),
  )
  const session = { user: 'user-7', groups: [], clientTags: [], properties: {}, resourceEstimates: {} }
  const statement = { session, queryType: () => 'SELECT' }
  const run = () => ruledSession(rules, statement, { group: 'all', digest: '' })(session)
  for (let index = 0; index < 2_000; index++) run()
  const start = process.cpuUsage()
  for (let index = 0; index < 5_000; index++) run()
  const { user, system } = process.cpuUsage(start)
  console.log('500 session property rules, a statement'.padEnd(60), `${((user + system) / 5_000).toFixed(1)} µs of CPU`)
}
