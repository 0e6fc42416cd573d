import { groupsPage, listPage, nodesPage, problemPage, queryPage, whoPart } from './views.js'

const main = document.getElementById('main')
const live = document.getElementById('live')
const who = document.getElementById('who')
const PAGE = 100
const REFRESH_MS = 1000
const NODES_MS = 2000

async function ask(path, options) {
  const answer = await fetch(path, { headers: { accept: 'application/json' }, ...options })
  if (answer.status === 401) logInAgain()
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}))
    throw new Error(problem.detail ?? `The server answered ${answer.status}`)
  }
  return answer
}

/** Asks the server for a change, and shows the new state or the error. */
async function change(path, options) {
  await ask(path, options).catch((error) => alert(error.message))
  refresh()
}

/** The session is over: after the next log-in the browser returns to this page. */
function logInAgain() {
  location.assign(`/ui/log-in?to=${encodeURIComponent(location.pathname + location.search)}`)
}

/** Who is logged in, where clients must be known. */
async function showWho() {
  const { user, mayLogOut } = await (await ask('/ui/session')).json()
  if (user !== null) who.replaceChildren(...whoPart(user, mayLogOut))
}

/** What this address shows; `follow` says what news in the event log make it draw anew. */
function pageOf(path, search) {
  const id = /^\/ui\/query\/([^/]+)$/.exec(path)?.[1]
  if (id !== undefined) return queryView(decodeURIComponent(id), search)
  if (path === '/ui/groups') return groupsView(search)
  return path === '/ui/nodes' ? nodesView() : listView(search)
}

function listView(search) {
  const filter = { state: search.get('state') ?? '', user: search.get('user') ?? '', q: search.get('q') ?? '' }
  const cursor = search.get('cursor')
  const given = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''))
  const asked = new URLSearchParams(given)
  asked.set('limit', String(PAGE))
  if (cursor) asked.set('cursor', cursor)
  return {
    title: 'Queries',
    follow: cursor ? undefined : '/v1/events',
    async draw() {
      const answer = await ask(`/v1/query?${asked}`)
      const next = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
      const older = next && new URL(next).searchParams.get('cursor')
      return listPage(await answer.json(), filter, {
        onFilter: (chosen) =>
          go(`/ui?${new URLSearchParams(Object.entries(chosen).filter(([, value]) => value !== ''))}`),
        onOlder: older ? () => go(`/ui?${new URLSearchParams([...given, ['cursor', older]])}`) : undefined,
      })
    },
  }
}

function queryView(id, search) {
  const path = `/v1/query/${encodeURIComponent(id)}`
  let asOf = search.get('asOf') ? Number(search.get('asOf')) : undefined
  const events = []

  /** Those that came since the last time, a thousand at a time. */
  async function readEvents() {
    for (;;) {
      const after = Number(events.at(-1)?.sequence ?? 0)
      const more = await (await ask(`${path}/events?limit=1000&after=${after}`)).json()
      events.push(...more)
      if (more.length < 1000) return
    }
  }

  return {
    title: id,
    follow: `/v1/events?query=${encodeURIComponent(id)}`,
    // The log has the figures of a running query from time to time alone.
    everyMs: NODES_MS,
    isOver: false,
    async draw() {
      const [query] = await Promise.all([
        ask(asOf === undefined ? path : `${path}?asOf=${asOf}`).then((answer) => answer.json()),
        readEvents(),
      ])
      this.isOver = asOf !== undefined || Boolean(query.finalQueryInfo)
      return queryPage(query, events, asOf, {
        onTravel(sequence) {
          asOf = sequence
          history.replaceState(null, '', sequence === undefined ? location.pathname : `?asOf=${sequence}`)
          refresh()
        },
        onCancel: () => confirm(`Cancel query ${id}?`) && change(path, { method: 'DELETE' }),
        onKill() {
          const message = prompt(`Kill query ${id}? Reason, shown in its error:`, '')
          if (message !== null) change(`${path}/killed`, { method: 'PUT', body: message })
        },
      })
    },
  }
}

/** All groups at the top, or one with those below it: its names are segments of a path. */
function groupsView(search) {
  const names = search.getAll('group')
  const path = ['/v1/resourceGroupState', ...names.map(encodeURIComponent)].join('/')
  return {
    title: 'Groups',
    everyMs: NODES_MS,
    async draw() {
      const answer = await (await ask(path)).json()
      return names.length === 0 ? groupsPage(answer) : groupsPage([answer, ...answer.subGroups], answer)
    },
  }
}

function nodesView() {
  return {
    title: 'Nodes',
    everyMs: NODES_MS,
    draw: async () => nodesPage(await (await ask('/v1/node')).json()),
  }
}

let page
let drawing = false
let again = false
let following

/** One drawing at a time; what is asked meanwhile is drawn after it. */
async function refresh() {
  if (drawing) return void (again = true)
  drawing = true
  do {
    again = false
    const current = page
    try {
      const parts = await current.draw()
      if (current === page) replace(parts)
    } catch (error) {
      if (current === page) show(error)
    }
  } while (again)
  drawing = false
}

/** Whoever types or drags goes on doing so: the field in use keeps focus and place, what was unfolded stays so. */
function replace(parts) {
  const { activeElement } = document
  if (isInUse(activeElement)) return void setTimeout(refresh, REFRESH_MS)
  const focused = activeElement?.id
  const open = [...main.querySelectorAll('details')].map((one) => one.open)
  main.replaceChildren(...parts.flat(Infinity).filter(Boolean))
  for (const [index, one] of [...main.querySelectorAll('details')].entries()) one.open = open[index] ?? false
  if (focused) document.getElementById(focused)?.focus()
}

/** Whoever types, has selected text to copy it, or holds a button down is not disturbed. */
function isInUse(activeElement) {
  if (activeElement?.form && main.contains(activeElement)) return true
  const selection = getSelection()
  return (
    (selection && !selection.isCollapsed && main.contains(selection.anchorNode)) || main.querySelector('button:active')
  )
}

function show(error) {
  main.replaceChildren(...problemPage(error.message))
}

function go(address) {
  history.pushState(null, '', address)
  document.activeElement?.blur()
  open()
}

function open() {
  following?.abort()
  following = new AbortController()
  page = pageOf(location.pathname, new URLSearchParams(location.search))
  document.title = `${page.title} · Quipu`
  refresh()
  if (page.follow) follow(page.follow, following.signal)
  else live.textContent = ''
  if (page.everyMs) {
    const current = page
    const timer = setInterval(() => current.isOver || refresh(), page.everyMs)
    following.signal.addEventListener('abort', () => clearInterval(timer))
  }
}

/** Draws anew when the log has news, a second apart at most; comes again when the connection ends. */
async function follow(address, signal) {
  let due
  const news = () => {
    due ??= setTimeout(() => {
      due = undefined
      if (!signal.aborted) refresh()
    }, REFRESH_MS)
  }
  while (!signal.aborted) {
    try {
      const answer = await fetch(address, { signal })
      if (answer.status === 401) return logInAgain()
      if (!answer.ok) throw new Error(`${answer.status}`)
      live.textContent = '● live'
      for (const reader = answer.body.getReader(); ;) {
        const { done, value } = await reader.read()
        if (done) break
        if (new TextDecoder().decode(value).includes('data:')) news()
      }
    } catch {
      if (signal.aborted) return
    }
    live.textContent = '○ not connected'
    await new Promise((resolve) => setTimeout(resolve, 2000))
    news()
  }
}

window.addEventListener('popstate', open)
document.addEventListener('click', (event) => {
  const anchor = event.target.closest?.('a')
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey
  if (!anchor || !plain || anchor.origin !== location.origin || !/^\/ui(\/|$)/.test(anchor.pathname)) return
  event.preventDefault()
  go(anchor.href)
})
open()
showWho().catch(show)
