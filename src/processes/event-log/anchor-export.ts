import { open, readdir, readFile, stat, truncate, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { anchorHash, exportedAnchorSchema, type ExportedAnchor } from '../../events/audit/anchor.ts'
import { endedAfter } from '../../shared/deadline.ts'
import { hasCode } from '../../shared/node-error.ts'
import { parseJson } from '../../shared/parse-json.ts'

export interface AnchorExportOptions {
  /** Anchors are appended to this file, each on disk before the next. Made if it is missing. */
  readonly file: string
  readonly webhook: string | undefined
  readonly onTrouble: (error: unknown) => void
}

export interface AnchorExport {
  /** Number of the last anchor in the file, 0 when there is none. */
  lastNumber(): Promise<number>
  /** Never waits and never fails: what cannot be written now is tried again. */
  take(anchor: ExportedAnchor): void
  /** Writes what the file still lacks. Does not wait for the webhook. */
  stop(): Promise<void>
}

/** The maximum number of anchors that wait for the webhook. Beyond that, the oldest are only in the file. */
const MAX_WAITING = 1000
const POST_TIMEOUT_MS = 10_000

/** Copies anchors to where a user who can write the log cannot change them. */
export function createAnchorExport(options: AnchorExportOptions): AnchorExport {
  const stopping = new AbortController()
  const toFile = createQueue(options, async (anchors) => {
    const handle: FileHandle = await open(options.file, 'a', 0o600)
    try {
      await handle.appendFile(anchors.map((anchor) => `${JSON.stringify(anchor)}\n`).join(''))
      await handle.datasync()
    } finally {
      await handle.close()
    }
    return anchors.length
  })
  const { webhook } = options
  const toWebhook =
    webhook === undefined
      ? undefined
      : createQueue(
          options,
          async ([first]) => {
            const answer = await endedAfter(POST_TIMEOUT_MS, stopping.signal, async (signal) => {
              const headers = { 'content-type': 'application/json' }
              const taken = await fetch(webhook, { method: 'POST', headers, body: JSON.stringify(first), signal })
              await taken.body?.cancel()
              return taken
            })
            if (!answer.ok) throw new Error(`The anchor webhook answered ${answer.status}`)
            return 1
          },
          MAX_WAITING,
        )
  return {
    async lastNumber() {
      const anchors = await readAnchorFile(options.file)
      await cutTornLine(options.file)
      return anchors?.at(-1)?.number ?? 0
    },
    take(anchor) {
      toFile.add(anchor)
      toWebhook?.add(anchor)
    },
    async stop() {
      stopping.abort()
      toWebhook?.stop()
      await toFile.drain()
    },
  }
}

/**
 * The anchors of a file; undefined if the file does not exist.
 * @throws Error that names the line that is no anchor
 */
async function readAnchorFile(path: string): Promise<ExportedAnchor[] | undefined> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
  const lines = text?.split('\n')
  // A last line without its line break was cut off by a crash. It is exported again.
  lines?.pop()
  return lines?.map((line, index) => {
    const parsed = exportedAnchorSchema.safeParse(parseJson(line))
    if (!parsed.success) throw new Error(`${path}: line ${index + 1} is not an anchor`)
    return parsed.data
  })
}

/**
 * The anchors of files, and of the files `*.jsonl` of folders, each anchor once.
 * @returns `read`: the anchors, undefined if no file exists; `missing`: the first path that does not exist
 * @throws Error that names the line that is no anchor
 */
export async function readAnchorFiles(
  paths: readonly string[],
): Promise<{ readonly read: ExportedAnchor[] | undefined; readonly missing: string | undefined }> {
  let read: Map<string, ExportedAnchor> | undefined
  let missing: string | undefined
  for (const path of (await Promise.all(paths.map(filesAt))).flat()) {
    const anchors = await readAnchorFile(path)
    if (!anchors) missing ??= path
    else {
      read ??= new Map()
      for (const anchor of anchors) read.set(anchorHash(anchor), anchor)
    }
  }
  return { read: read && [...read.values()], missing }
}

async function filesAt(path: string): Promise<string[]> {
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isFolder) return [path]
  const names = (await readdir(path)).filter((name) => name.endsWith('.jsonl')).sort()
  return (names.length === 0 ? ['*.jsonl'] : names).map((name) => join(path, name))
}

/** Cuts an incomplete last line, so that the next anchor begins a line. */
async function cutTornLine(path: string): Promise<void> {
  const bytes = await readFile(path).catch(() => undefined)
  if (bytes && bytes.length > 0 && bytes.at(-1) !== 10) await truncate(path, bytes.lastIndexOf(10) + 1)
}

/**
 * A queue that sends in order, and retries until all is taken.
 * @param send returns how many it has sent
 */
function createQueue(
  { onTrouble }: Pick<AnchorExportOptions, 'onTrouble'>,
  send: (anchors: readonly ExportedAnchor[]) => Promise<number>,
  most = Infinity,
) {
  const waiting: ExportedAnchor[] = []
  let running: Promise<void> | undefined
  let stopped = false
  let draining = false

  async function run(): Promise<void> {
    for (let delay = 100; waiting.length > 0 && !stopped;) {
      try {
        waiting.splice(0, await send([...waiting]))
        delay = 100
      } catch (error) {
        if (stopped) return
        onTrouble(error)
        if (draining) return
        await sleep(delay, undefined, { ref: false })
        delay = Math.min(delay * 2, 60_000)
      }
    }
  }

  function start(): void {
    running ??= run().finally(() => {
      running = undefined
      if (waiting.length > 0 && !stopped && !draining) start()
    })
  }

  return {
    add(anchor: ExportedAnchor): void {
      if (stopped) return
      // The anchor that is being sent keeps its position.
      if (waiting.length >= most) waiting.splice(1, 1)
      waiting.push(anchor)
      start()
    },
    stop(): void {
      stopped = true
    },
    async drain(): Promise<void> {
      draining = true
      if (waiting.length > 0) start()
      await Promise.race([running, sleep(1000, undefined, { ref: false })])
      stopped = true
    },
  }
}
