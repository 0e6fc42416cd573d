import { h, link } from './dom.js'

const STATES = ['QUEUED', 'PLANNING', 'STARTING', 'RUNNING', 'FINISHING', 'FINISHED', 'FAILED']

const state = (name) => h('span', { class: `state ${/^[A-Za-z_]+$/.test(name) ? name : ''}` }, name)
const time = (iso) => (iso ? h('time', { datetime: iso, title: iso }, iso.replace('T', ' ').replace(/Z$/, '')) : '')
const number = (value) => (typeof value === 'number' ? value.toLocaleString('en') : (value ?? ''))

/** Heads of columns; those of numbers begin with #. */
const titles = (...names) =>
  names.map((name) => (name.startsWith('#') ? h('th', { class: 'number' }, name.slice(1)) : h('th', null, name)))

/** Logging out changes something at the server: a form, not a link. */
export function whoPart(user, mayLogOut) {
  const logOut = h('form', { method: 'post', action: '/ui/log-out' }, h('button', null, 'Log out'))
  return [h('span', null, user), mayLogOut ? logOut : null].filter(Boolean)
}

/** @param {{ state: string, user: string, q: string }} filter */
export function listPage(queries, filter, { onFilter, onOlder }) {
  const field = (name, label) =>
    h('input', { type: 'search', name, placeholder: label, 'aria-label': label, value: filter[name] })
  const submit = (event) => {
    event.preventDefault()
    onFilter(Object.fromEntries(new FormData(event.currentTarget)))
  }
  return [
    h('h1', null, 'Queries'),
    h(
      'form',
      { class: 'filter', onsubmit: submit },
      h(
        'select',
        { name: 'state', 'aria-label': 'State' },
        h('option', { value: '' }, 'any state'),
        STATES.map((name) => h('option', { value: name, selected: filter.state === name }, name)),
      ),
      field('user', 'user'),
      field('q', 'text of the statement'),
      h('button', null, 'Filter'),
    ),
    queries.length === 0 ? h('p', null, 'No queries.') : queryTable(queries),
    onOlder ? h('p', null, h('button', { onclick: onOlder }, 'Older')) : null,
  ]
}

function queryTable(queries) {
  return h(
    'table',
    { id: 'queries' },
    h('tr', null, titles('Query', 'State', 'User', 'Created', '#Elapsed', '#Rows', 'Statement')),
    queries.map((query) =>
      h(
        'tr',
        null,
        h('td', { class: 'id' }, link(`/ui/query/${query.queryId}`, query.queryId)),
        h('td', null, state(query.state), ' ', query.errorCode?.name),
        h('td', null, query.session.user),
        h('td', null, time(query.queryStats.createTime)),
        h('td', { class: 'number' }, query.queryStats.elapsedTime),
        h('td', { class: 'number' }, number(query.queryStats.outputPositions)),
        h('td', { class: 'sql', title: query.query }, query.query),
      ),
    ),
  )
}

/**
 * @param query as the query resource shows it, now or as of an event
 * @param events CloudEvents of its stream
 * @param asOf sequence it is shown as of; undefined: now
 */
export function queryPage(query, events, asOf, { onTravel, onCancel, onKill }) {
  const { queryStats: stats, session } = query
  const id = query.queryId
  return [
    h(
      'div',
      { class: 'title' },
      h('h1', { class: 'id' }, id),
      state(query.state),
      h(
        'span',
        { class: 'actions' },
        link(`/v1/query/${id}?format=json`, 'JSON'),
        ' ',
        query.finalQueryInfo ? link(`/v1/query/${id}/trace`, 'Trace') : null,
        ' ',
        query.finalQueryInfo || asOf !== undefined
          ? null
          : [h('button', { onclick: onCancel }, 'Cancel'), ' ', h('button', { onclick: onKill }, 'Kill')],
      ),
    ),
    travel(events, asOf, onTravel),
    errorBox(query),
    statement(query.query, query.failureInfo?.errorLocation),
    h('h2', null, 'Figures'),
    facts({
      User: session.user,
      Source: session.source,
      Catalog: [session.catalog, session.schema].filter(Boolean).join('.'),
      Type: query.queryType,
      Route: routeText(query.route),
      Cluster: clusterText(query.route),
      Waits: query.queuedReason,
      Created: time(stats.createTime),
      Ended: time(stats.endTime),
      Elapsed: stats.elapsedTime,
      Queued: stats.queuedTime,
      Planning: stats.planningTime,
      CPU: stats.totalCpuTime,
      Scheduled: stats.totalScheduledTime,
      Blocked: stats.totalBlockedTime,
      'Peak memory': stats.peakTotalMemoryReservation,
      'Rows read': number(stats.rawInputPositions),
      'Bytes read': stats.rawInputDataSize,
      'Rows given': number(stats.outputPositions),
      Splits: `${stats.completedSplits ?? 0} of ${stats.totalSplits ?? 0}`,
      Recoveries: query.recoveries || undefined,
    }),
    query.outputStage ? [h('h2', null, 'Stages'), stage(query.outputStage)] : null,
    h('h2', null, 'Events'),
    eventTable(events, asOf),
  ]
}

/** The decision about the route in words, such as: group big, by rule 'etl'. */
function routeText(route) {
  if (!route) return undefined
  const { plan, to, name, rule, fallback, skipped = [] } = route
  const target = name ? `${to} ${name}` : to === 'reject' ? to : plan
  const by = rule ? `, by ${fallback ? 'the fallback of ' : ''}rule '${rule}'` : ''
  return `${target}${by}${skipped.map((one) => `; rule '${one.rule}' was skipped: ${one.why}`).join('')}`
}

/** The cluster of the last attempt, and the id of the query there. */
function clusterText(route) {
  if (!route?.cluster) return undefined
  const { cluster, remoteQueryId, attempts } = route
  return `${cluster}, query ${remoteQueryId}${attempts > 1 ? `, after ${attempts} attempts` : ''}`
}

/** Time travel: the same page as of each of its events. */
function travel(events, asOf, onTravel) {
  const last = events.at(-1)?.sequence ?? 1
  const at = asOf ?? last
  const shown = events.find((event) => event.sequence === at)
  return h(
    'div',
    { class: 'travel' },
    h('label', { for: 'asof' }, asOf === undefined ? 'Now' : `As of event ${at} of ${last}`),
    h('input', {
      id: 'asof',
      type: 'range',
      min: 1,
      max: last,
      value: at,
      oninput: (event) => onTravel(Number(event.currentTarget.value)),
    }),
    h('span', null, shown ? [eventName(shown), ' ', time(shown.time)] : ''),
    h('button', { disabled: asOf === undefined, onclick: () => onTravel(undefined) }, 'Now'),
  )
}

function errorBox({ failureInfo, errorCode, endedBy }) {
  if (!errorCode) return null
  const { message, errorLocation } = failureInfo ?? {}
  const place = errorLocation ? ` at line ${errorLocation.lineNumber}, column ${errorLocation.columnNumber}` : ''
  return h('div', { class: 'error' }, h('b', null, errorCode.name, place), h('div', null, message), enderOf(endedBy))
}

/** The user that ended the query, if the server says so. */
function enderOf(endedBy) {
  if (!endedBy) return null
  const { user, originalUser, remoteAddress } = endedBy
  const name = originalUser ? `${originalUser} as ${user}` : user
  return h('div', null, 'by ', name, remoteAddress ? ` from ${remoteAddress}` : '')
}

/** The text of a statement, the character an error is at marked. */
export function statement(sql, location) {
  const place = location && offsetOf(sql, location.lineNumber, location.columnNumber)
  if (place === undefined) return h('pre', { id: 'sql' }, sql)
  const word = /^(\w+|.)/su.exec(sql.slice(place))?.[0] ?? ' '
  return h('pre', { id: 'sql' }, sql.slice(0, place), h('mark', null, word), sql.slice(place + word.length))
}

function offsetOf(sql, line, column) {
  const lines = sql.split('\n')
  if (line < 1 || line > lines.length) return undefined
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0)
  return Math.min(before + column - 1, sql.length)
}

function facts(values) {
  const known = Object.entries(values).filter(([, value]) => value !== undefined && value !== '')
  return h(
    'dl',
    { class: 'facts' },
    known.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))),
  )
}

function stage({ stageId, state: name, distribution, stageStats: stats, tasks, subStages }) {
  return h(
    'div',
    { class: 'stage' },
    h('div', null, h('b', null, `Stage ${stageId.split('.').at(-1)}`), ' ', state(name), ' ', distribution),
    h(
      'table',
      null,
      h(
        'tr',
        null,
        titles('Task', 'State', '#Elapsed', '#CPU', '#Blocked', '#Rows in', '#Rows out', '#Bytes out', '#Memory'),
      ),
      tasks.map((task) => taskRow(task)),
      tasks.length > 1 ? sumRow(stats) : null,
    ),
    tasks.map(({ stats: figures }) => figures.pipelines.map((pipeline) => operators(pipeline, figures.profiled))),
    subStages.map(stage),
  )
}

function taskRow({ taskId, state: name, stats }) {
  const cells = [stats.elapsedTime, stats.totalCpuTime, stats.totalBlockedTime]
  return h(
    'tr',
    null,
    h('td', { class: 'id' }, taskId.split('.').slice(1).join('.')),
    h('td', null, state(name)),
    [...cells, ...volumes(stats), stats.memoryReservation].map((cell) => h('td', { class: 'number' }, cell)),
  )
}

function sumRow(stats) {
  const cells = ['', stats.totalCpuTime, stats.totalBlockedTime, ...volumes(stats), stats.totalMemoryReservation]
  return h(
    'tr',
    null,
    h('th', { colspan: 2 }, 'all'),
    cells.map((cell) => h('td', { class: 'number' }, cell)),
  )
}

function volumes(stats) {
  return [number(stats.processedInputPositions), number(stats.outputPositions), stats.outputDataSize]
}

/** @param profiled false: the engine measured no times; rows are known where the plan determines them */
function operators({ pipelineId, operatorSummaries }, profiled) {
  if (operatorSummaries.length === 0) return null
  const rows = (one, count) => (one.unknown?.includes(count) ? '?' : number(one[count]))
  const names = operatorSummaries.map((one) => one.operatorType).join(' → ')
  return h(
    'details',
    null,
    h('summary', null, `Pipeline ${pipelineId}${profiled ? '' : ' (not profiled)'}: ${names}`),
    h(
      'table',
      null,
      h('tr', null, titles('Operator', '#Rows in', '#Rows out', '#Wall')),
      operatorSummaries.map((one) =>
        h(
          'tr',
          null,
          h('td', null, one.operatorType),
          [
            rows(one, 'inputPositions'),
            rows(one, 'outputPositions'),
            profiled || one.getOutputWall !== '0.00ns' ? one.getOutputWall : '?',
          ].map((cell) => h('td', { class: 'number' }, cell)),
        ),
      ),
    ),
  )
}

/** `quipu.resultpages.published.v1` → `resultpages published`. */
function eventName({ type }) {
  return type
    .replace(/^quipu\./, '')
    .replace(/\.v\d+$/, '')
    .replaceAll('.', ' ')
}

function eventTable(events, asOf) {
  return h(
    'table',
    { id: 'events' },
    h('tr', null, titles('', 'Event', 'Time', 'Data')),
    events.map((event) =>
      h(
        'tr',
        { class: asOf !== undefined && event.sequence > asOf ? 'future' : undefined },
        h('td', { class: 'number' }, event.sequence),
        h('td', null, eventName(event)),
        h('td', null, time(event.time)),
        h(
          'td',
          null,
          h(
            'details',
            null,
            h('summary', null, 'show'),
            h('pre', { class: 'small' }, JSON.stringify(event.data, null, 2)),
          ),
        ),
      ),
    ),
  )
}

export function nodesPage(nodes) {
  return [
    h('h1', null, 'Nodes'),
    h(
      'table',
      { id: 'nodes' },
      h(
        'tr',
        null,
        titles('Node', 'State', 'Address', 'Version', '#Age', '#Cores', '#Requests', '#Failures', 'Last answer'),
      ),
      nodes.map((node) =>
        h(
          'tr',
          null,
          h('td', { class: 'id' }, node.nodeId),
          h('td', null, state(node.state ?? '')),
          h('td', null, node.uri),
          h('td', null, node.nodeVersion?.version),
          h('td', { class: 'number' }, node.age),
          h('td', { class: 'number' }, node.cores),
          h('td', { class: 'number' }, node.recentRequests.toFixed(1)),
          h('td', { class: 'number' }, node.recentFailures.toFixed(1)),
          h('td', null, time(node.lastResponseTime)),
        ),
      ),
    ),
    nodes.length === 0 ? h('p', null, 'No workers.') : null,
  ]
}

/** @param one the group whose page it is; none: those at the top */
export function groupsPage(groups, one) {
  return [
    h('h1', null, one ? one.id.join(' › ') : 'Groups'),
    h(
      'table',
      { id: 'groups' },
      h('tr', null, titles('Group', 'State', 'Policy', '#Weight', '#Running', '#Waiting', '#Memory', '#CPU')),
      groups.map((group) =>
        h(
          'tr',
          null,
          h('td', null, link(groupAddress(group), group.id.at(-1))),
          h('td', null, state(group.state)),
          h('td', null, group.schedulingPolicy.toLowerCase()),
          h('td', { class: 'number' }, group.schedulingWeight),
          h('td', { class: 'number' }, `${group.numRunningQueries} of ${group.hardConcurrencyLimit}`),
          h('td', { class: 'number' }, `${group.numQueuedQueries} of ${group.maxQueuedQueries}`),
          h('td', { class: 'number' }, group.memoryUsage),
          h('td', { class: 'number' }, group.cpuUsage),
        ),
      ),
    ),
    h(
      'div',
      null,
      one?.runningQueries.map((query) =>
        h('p', null, link(`/ui/query/${query.queryId}`, query.queryId), ` ${query.user}`),
      ),
    ),
    groups.length === 0 ? h('p', null, 'No group has queries now.') : null,
  ]
}

function groupAddress({ id }) {
  return `/ui/groups?${id.map((name) => `group=${encodeURIComponent(name)}`).join('&')}`
}

export function problemPage(message) {
  return [h('h1', null, 'The request failed'), h('p', null, message)]
}
