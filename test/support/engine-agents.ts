import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from './quipu-process.ts'
import { repository } from './repository.ts'

/** An engine that runs code of a test, as an attacker behind both of its walls could. */
export interface EngineAgent {
  readonly pid: number
  readonly uid: number
  readonly groups: readonly number[]
  /** `<data>/worker-1/engines/0/`, for an engine with a separate user. */
  readonly folder: string | undefined
  /**
   * Runs JavaScript in the process of the engine: the body of an asynchronous function with `fs`, `net`, `child_process`,
   * `folder` and `parameter`. The result is returned as JSON, an exception as `{ error }` with its code.
   */
  run(body: string, parameter?: unknown): Promise<unknown>
}

/** A module of engines with an agent that reads its orders from a folder. */
function agentText(orders: string): string {
  return `export { register, vocabulary } from './real-engine-module.js'
import fs from 'node:fs'
import net from 'node:net'
import child_process from 'node:child_process'
import { workerData } from 'node:worker_threads'
const orders = ${JSON.stringify(orders)}
const folder = workerData.channelFolder
const write = (name, value) => {
  fs.writeFileSync(orders + '/.' + name, JSON.stringify(value) ?? 'null', { mode: 0o666 })
  fs.chmodSync(orders + '/.' + name, 0o666)
  fs.renameSync(orders + '/.' + name, orders + '/' + name)
}
write(process.pid + '.agent', { pid: process.pid, uid: process.getuid(), groups: process.getgroups(), folder })
const AsyncFunction = (async () => {}).constructor
const done = new Set()
setInterval(() => {
  for (const name of fs.readdirSync(orders)) {
    const [pid, id, kind] = name.split('.')
    if (kind !== 'order' || pid !== String(process.pid) || done.has(id)) continue
    done.add(id)
    const { body, parameter } = JSON.parse(fs.readFileSync(orders + '/' + name, 'utf8'))
    new AsyncFunction('fs', 'net', 'child_process', 'folder', 'parameter', body)(fs, net, child_process, folder, parameter)
      .then((value) => write(pid + '.' + id + '.answer', { value }), (error) => write(pid + '.' + id + '.answer', { error: error.code ?? error.message }))
  }
}, 20)
`
}

/**
 * A build whose engines load an agent beside the module of the front end. The agent runs JavaScript from files.
 * @returns the program to start, and the engines that have started so far
 */
export function buildWithAgents(folder: string): { readonly program: string; agents(): EngineAgent[] } {
  const home = join(folder, 'build')
  const orders = join(folder, 'orders')
  mkdirSync(home)
  chmodSync(home, 0o755)
  mkdirSync(orders)
  chmodSync(orders, 0o777)
  cpSync(join(repository, 'dist'), join(home, 'dist'), { recursive: true })
  for (const name of ['node_modules', 'etc', 'migrations']) symlinkSync(join(repository, name), join(home, name))
  cpSync(join(repository, 'package.json'), join(home, 'package.json'))
  // Engines load the module from the bundle if this build has a bundle.
  for (const folder of ['dist/duckdb', 'dist/bundle']) {
    const module = join(home, folder, 'engine-module.js')
    if (!existsSync(module)) continue
    renameSync(module, join(home, folder, 'real-engine-module.js'))
    writeFileSync(module, agentText(orders))
  }
  const agentOf = (name: string): EngineAgent => {
    const about = JSON.parse(readFileSync(join(orders, name), 'utf8')) as Omit<EngineAgent, 'run'>
    return {
      ...about,
      folder: about.folder,
      async run(body, parameter) {
        const id = randomUUID()
        const answer = join(orders, `${about.pid}.${id}.answer`)
        const order = join(orders, `${about.pid}.${id}.order`)
        // The file gets the name of an order only when it is complete.
        const unfinished = join(orders, `.${id}`)
        writeFileSync(unfinished, JSON.stringify({ body, parameter }))
        chmodSync(unfinished, 0o644)
        renameSync(unfinished, order)
        await waitUntil('the engine has answered', () => existsSync(answer))
        const { value, error } = JSON.parse(readFileSync(answer, 'utf8')) as { value?: unknown; error?: string }
        return error === undefined ? value : { error }
      },
    }
  }
  return {
    program: join(home, 'dist', 'cli', 'quipu.js'),
    agents: () =>
      readdirSync(orders)
        .filter((name) => /^\d+\.agent$/.test(name))
        .map(agentOf),
  }
}
