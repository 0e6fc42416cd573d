/**
 * The processes that stay root if Quipu was started as root and runs its engines as users of their own: the launcher,
 * and a watcher that only waits for the launcher's death.
 *
 * - The launcher starts before all other processes become the user of --run-as. Its one argument, which root made, says
 *   which program to start, in which folders, as which users. Later messages cannot add to that.
 * - The supervisor's requests are whole numbers: start slot s of process p, end it, end all of p. Numbers out of bounds
 *   are ignored. Requests carry no text, path or environment. The launcher passes on an engine's last words and never
 *   reads them.
 * - A slot's engine has a user and a group of its own. It gets access through its worker's folders: `engines/<slot>`
 *   (2750: FIFOs and the socket of its channel, which the engine cannot change), `own` in it, and `spill/<slot>`
 *   (2770). The gate, a group of all engines, opens the folders above and the tables of `memory` for reading. The
 *   engine has access to nothing else in the data folder.
 * - The number of processes and threads that run as the engine's user is limited.
 * - The engine writes tables into `own`. Its parent copies them from files that it has opened and that belong to that
 *   user (`engine/staged-files.ts`).
 * - When a slot's engine ends, the launcher kills all processes of its user before it reports the end: no process
 *   outlives the engine.
 * - The launcher ends when the supervisor closes the channel, and ends all engines with it. It ignores signals that end
 *   other processes.
 * - Launcher and watcher restart each other. If the watcher dies, the launcher starts another. If the launcher dies,
 *   the watcher kills the engines that it left, becomes the launcher of the next life and reports that to the
 *   supervisor. Both hold the channel to the supervisor (descriptor 3), and only the launcher reads it, so no message
 *   is lost.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { killAllOf, killLeftOf } from './engine-users.ts'
import { onLines } from './lines.ts'
import type { FromLauncher, LauncherPlan, ToLauncher } from './messages.ts'

interface Slot {
  readonly run: number
  child?: ChildProcess
  killed: boolean
  readonly gone: Promise<void>
}

const ENTRY = fileURLToPath(new URL('./engine-entry.js', import.meta.url))
// As in execution/engine/spawned-engine.ts: the engine is killed first when memory runs out, and malloc fails above the
// limit.
// The limit on processes of one user applies when the engine forks: -u in bash, -p in dash and busybox.
const SHELL =
  'echo 1000 2>/dev/null >/proc/self/oom_score_adj; ulimit -d "$0" 2>/dev/null; ' +
  '{ ( ulimit -u "$1" ) && ulimit -u "$1" || ulimit -p "$1"; } 2>/dev/null; shift; exec "$@"'
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const LAST_WORDS = 2_000
const MOST_KILOBYTES = 2 ** 40
const MOST_BEAT_MS = 3_600_000
const WATCHER_AGAIN_MS = 100

const plan = JSON.parse(process.argv[2]!) as LauncherPlan
const slots = new Map<number, Slot>()

for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGPIPE'] as const) process.on(name, () => {})
/** Counts launchers: the supervisor started the first, each later launcher was a watcher. */
let life = Number(process.argv[3] ?? 1)
let channel: Socket | undefined
let watcher: ChildProcess | undefined
let ending = false

if (process.argv[3] === undefined) {
  startWatcher()
  beLauncher()
} else if (process.connected) {
  process.once('disconnect', () => void beNextLauncher())
} else {
  // The launcher died while this watcher started.
  void beNextLauncher()
}

function beLauncher(): void {
  channel = new Socket({ fd: 3, allowHalfOpen: true })
  onLines(channel, (message) => {
    const asked = read(message)
    if (asked) take(asked)
  })
  channel.once('error', () => void end())
  channel.once('end', () => void end())
}

async function beNextLauncher(): Promise<void> {
  life++
  // This comes first: this process can be killed while it ends the engines that are left.
  startWatcher()
  await killLeftOf(plan.ids.first, plan.folders.length * plan.ids.slots)
  beLauncher()
  // The launcher before this one may have died in the middle of a line.
  channel?.write('\n')
  sendToSupervisor({ type: 'launcher', life })
}

/**
 * Starts a watcher. Without one, the launcher's death would end the server, so a killed watcher is replaced at once.
 */
function startWatcher(): void {
  if (ending) return
  const started = spawn(process.execPath, [process.argv[1]!, process.argv[2]!, String(life)], {
    stdio: ['ignore', 'ignore', 'inherit', 3, 'ipc'],
    env: {},
    cwd: '/',
    detached: true,
  })
  watcher = started
  const startLater = (): void => void setTimeout(startWatcher, WATCHER_AGAIN_MS)
  started.once('error', () => {
    if (started.pid === undefined) startLater()
  })
  // A watcher that cannot run exits with a code. A retry waits a moment then.
  started.once('exit', (_code, signal) => (signal === null ? startLater() : startWatcher()))
}

async function end(): Promise<void> {
  ending = true
  await endAll(() => true)
  // Kill it whatever it is doing: a watcher that survives would become the next launcher.
  watcher?.kill('SIGKILL')
  process.exit(0)
}

function take(asked: ToLauncher): void {
  switch (asked.do) {
    case 'start':
      return start(asked)
    case 'kill': {
      const running = slots.get(idOf(asked))
      if (running?.run === asked.run) kill(running)
      return
    }
    case 'end':
      return void endAll((id) => Math.floor((id - plan.ids.first) / plan.ids.slots) === asked.process).then(() =>
        sendToSupervisor({ type: 'all ended', process: asked.process }),
      )
  }
}

function idOf({ process: number, slot }: { readonly process: number; readonly slot: number }): number {
  return plan.ids.first + number * plan.ids.slots + slot
}

function kill(slot: Slot): void {
  slot.killed = true
  slot.child?.kill('SIGKILL')
}

async function endAll(which: (id: number) => boolean): Promise<void> {
  const chosen = [...slots].filter(([id]) => which(id)).map(([, slot]) => slot)
  chosen.forEach(kill)
  await Promise.all(chosen.map(({ gone }) => gone))
}

function start(asked: Extract<ToLauncher, { do: 'start' }>): void {
  const id = idOf(asked)
  const before = slots.get(id)
  if (before) kill(before)
  let resolveGone!: () => void
  const slot: Slot = {
    run: asked.run,
    killed: false,
    gone: new Promise((resolve) => (resolveGone = resolve)),
  }
  slots.set(id, slot)
  let words = ''
  const about = { process: asked.process, slot: asked.slot, run: asked.run }
  const ended = async (): Promise<void> => {
    await killAllOf(id)
    if (slots.get(id) === slot) slots.delete(id)
    resolveGone()
    sendToSupervisor({ type: 'ended', ...about, words })
  }
  // An earlier start in this slot may have left processes.
  void (before?.gone ?? killAllOf(id)).then(() => {
    if (slot.killed) return ended()
    const child = spawn(
      '/bin/sh',
      ['-c', SHELL, String(asked.dataKilobytes), String(plan.tasks), ...commandOf(id, asked)],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { PATH, UV_THREADPOOL_SIZE: '16' },
        cwd: '/',
        detached: true,
      },
    )
    slot.child = child
    child.stderr.setEncoding('latin1').on('data', (text: string) => (words = (words + text).slice(-LAST_WORDS)))
    child.stderr.on('error', () => {})
    let over = false
    const onOver = (): void => {
      if (over) return
      over = true
      void ended()
    }
    child.once('error', (error) => {
      words = error.message
      if (child.pid === undefined) onOver()
    })
    child.once('exit', onOver)
    if (child.pid !== undefined) sendToSupervisor({ type: 'started', ...about, pid: child.pid })
    return undefined
  })
}

function commandOf(id: number, { process: number, slot, beatMs }: Extract<ToLauncher, { do: 'start' }>): string[] {
  const argument = { beatMs, functionsModule: plan.functionsModule, channelFolder: `${plan.folders[number]!}/${slot}/` }
  const groups = JSON.stringify([plan.ids.gate])
  return [process.execPath, ENTRY, String(id), groups, String(process.pid), plan.program, JSON.stringify(argument)]
}

function read(message: unknown): ToLauncher | undefined {
  if (typeof message !== 'object' || message === null) return undefined
  const asked = message as Readonly<Record<string, unknown>>
  if (asked['life'] !== life) return undefined
  const whole = (name: string, below: number): number | undefined => {
    const value = asked[name]
    return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < below
      ? (value as number)
      : undefined
  }
  const number = whole('process', plan.folders.length)
  if (number === undefined) return undefined
  if (asked['do'] === 'end') return { do: 'end', process: number }
  const slot = whole('slot', plan.ids.slots)
  const run = whole('run', Number.MAX_SAFE_INTEGER)
  if (slot === undefined || run === undefined) return undefined
  if (asked['do'] === 'kill') return { do: 'kill', process: number, slot, run }
  const dataKilobytes = whole('dataKilobytes', MOST_KILOBYTES)
  const beatMs = whole('beatMs', MOST_BEAT_MS)
  if (asked['do'] !== 'start' || dataKilobytes === undefined || !beatMs) return undefined
  return { do: 'start', process: number, slot, run, dataKilobytes, beatMs }
}

function sendToSupervisor(message: FromLauncher): void {
  if (channel?.writable) channel.write(`${JSON.stringify(message)}\n`)
}
