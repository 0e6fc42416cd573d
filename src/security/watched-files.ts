import { readFileSync, statSync, type Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { nodeCode } from '../shared/node-error.ts'

/** Is called after files changed. */
export interface FileNews {
  /** The new content is in force. */
  onReloaded(): void
  /** The new content is not in force, the previous content is. Called once for each change. */
  onBroken(error: Error): void
}

export interface WatchedFiles<T> {
  /** The content that is in force. */
  readonly value: T
  stop(): void
}

type Texts<P extends readonly string[]> = { readonly [Index in keyof P]: string }

const LOOK_MS = 1_000
/**
 * Files that change all the time are read this often at once, and then once in this many milliseconds, because each
 * content that comes into force is recorded.
 */
const AT_ONCE = 10
const THEN_EACH_MS = 10_000

export interface WatchOptions<P extends readonly string[], T> {
  /** The value that the previous process had in force. It stays in force while the files cannot be read. */
  readonly before?: () => { readonly value: T } | undefined
  /** As `read`, for a change; the value is in force once this resolves. */
  readonly readAgain?: (texts: Texts<P>, before: T) => Promise<T>
}

/**
 * Reads files at once, and again whenever a file changed: replaced, or rewritten. A change is read after all files
 * stayed the same from one check to the next. Files are checked by name, so links may lead elsewhere meanwhile.
 * @param read makes the value from the texts; its errors are reported, so they must quote nothing secret
 * @throws what `read` or the reading throws at the first time, where nothing was in force before
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
  /** The mark of a change that is not in force yet, because the files may still be being written. */
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

/** Allows `most` at once, and then one in every `eachMs` milliseconds. */
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

/** A missing file has a mark too, so that its removal is reported once. */
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
