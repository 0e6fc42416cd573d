import { readFileSync, statSync, type Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { nodeCode } from '../shared/node-error.ts'

/** What becomes of files that were changed. */
export interface FileNews {
  /** What lies there now is in force. */
  onReloaded(): void
  /** What lies there is not in force: what was there before is. Told once for each change. */
  onBroken(error: Error): void
}

export interface WatchedFiles<T> {
  /** What is in force. */
  readonly value: T
  stop(): void
}

type Texts<P extends readonly string[]> = { readonly [Index in keyof P]: string }

const LOOK_MS = 1_000
/** Files that change on and on are read so often at once, and then again each so many milliseconds: what is in force is recorded. */
const AT_ONCE = 10
const THEN_EACH_MS = 10_000

export interface WatchOptions<P extends readonly string[], T> {
  /** What a process before this one had in force, and stays so while the files cannot be taken. */
  readonly before?: () => { readonly value: T } | undefined
  /** As `read`, of what changed; it is in force once this resolves. */
  readonly readAgain?: (texts: Texts<P>, before: T) => Promise<T>
}

/**
 * Files that are read at once, and again whenever one was changed: replaced, or written anew in its place, which is waited
 * for until all rest from one look to the next. They are looked at by their names, so links may lead elsewhere meanwhile.
 * @param read makes what is in force of the texts; what it throws is told, so it must quote nothing that is secret
 * @throws what `read` throws, or the reading, the first time, where nothing was in force before
 */
export function watchFiles<const P extends readonly string[], T>(
  paths: P,
  read: (texts: Texts<P>) => T,
  news: FileNews,
  { before, readAgain }: WatchOptions<P, T> = {},
): WatchedFiles<T> {
  let seen = paths.map(markNow).join()
  let value: T
  try {
    value = read(paths.map((path) => readFileSync(path, 'utf8')) as unknown as Texts<P>)
  } catch (error) {
    const last = before?.()
    if (!last) throw error
    value = last.value
    queueMicrotask(() => news.onBroken(error as Error))
  }
  /** Not in force yet: they may still be written. */
  let fresh = ''
  let looking = false
  const allowance = createAllowance(AT_ONCE, THEN_EACH_MS)

  async function check(): Promise<void> {
    const mark = await marksAt(paths)
    if (mark === seen || mark !== fresh) {
      fresh = mark
      return
    }
    if (!allowance.take(performance.now())) return
    seen = mark
    const texts = (await Promise.all(paths.map((path) => readFile(path, 'utf8')))) as unknown as Texts<P>
    if ((await marksAt(paths)) !== mark) return
    value = readAgain === undefined ? read(texts) : await readAgain(texts, value)
    news.onReloaded()
  }

  const timer = setInterval(() => {
    if (looking) return
    looking = true
    check()
      .catch((error: unknown) => news.onBroken(error as Error))
      .finally(() => (looking = false))
  }, LOOK_MS)
  timer.unref()
  return {
    get value() {
      return value
    },
    stop: () => clearInterval(timer),
  }
}

/** So many at once, and then one each so many milliseconds. */
export function createAllowance(most: number, eachMs: number): { take(nowMs: number): boolean } {
  let left = most
  let at = 0
  return {
    take(nowMs) {
      left = Math.min(most, left + (nowMs - at) / eachMs)
      at = nowMs
      if (left < 1) return false
      left--
      return true
    },
  }
}

async function marksAt(paths: readonly string[]): Promise<string> {
  return (await Promise.all(paths.map(markAt))).join()
}

/** A file that is not there has a mark too: that it went is told once. */
async function markAt(path: string): Promise<string> {
  try {
    return markOf(await stat(path))
  } catch (error) {
    return nodeCode(error) ?? 'unknown'
  }
}

function markNow(path: string): string {
  try {
    return markOf(statSync(path))
  } catch (error) {
    return nodeCode(error) ?? 'unknown'
  }
}

function markOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(' ')
}
