import { readFileSync, statSync, type Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { nodeCode } from '../shared/node-error.ts'

/** What becomes of a file that was changed. */
export interface FileNews {
  /** What lies there now is in force. */
  onReloaded(path: string): void
  /** What lies there is not in force: what was there before is. Told once for each change. */
  onBroken(path: string, error: Error): void
}

export interface WatchedFile<T> {
  /** What is in force. */
  readonly value: T
  stop(): void
}

const LOOK_MS = 1_000

/**
 * A file that is read at once, and again whenever it was changed: replaced, or written anew in its place, which is waited
 * for until it rests from one look to the next. It is looked at by its name, so a link may lead elsewhere meanwhile.
 * @param read makes what is in force of the text; what it throws is told, so it must quote nothing that is secret
 * @throws what `read` throws, or the reading, the first time: there is nothing before it that could be in force
 */
export function watchFile<T>(path: string, read: (text: string) => T, news: FileNews): WatchedFile<T> {
  let seen = markOf(statSync(path))
  let value = read(readFileSync(path, 'utf8'))
  /** Not in force yet: it may still be written. */
  let fresh = ''
  let looking = false

  async function look(): Promise<void> {
    const mark = await markAt(path)
    if (mark === seen || mark !== fresh) {
      fresh = mark
      return
    }
    seen = mark
    const text = await readFile(path, 'utf8')
    const next = read(text)
    if ((await markAt(path)) !== mark) return
    value = next
    news.onReloaded(path)
  }

  const timer = setInterval(() => {
    if (looking) return
    looking = true
    look()
      .catch((error: unknown) => news.onBroken(path, error as Error))
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

/** A file that is not there has a mark too: that it went is told once. */
async function markAt(path: string): Promise<string> {
  try {
    return markOf(await stat(path))
  } catch (error) {
    return nodeCode(error) ?? 'unknown'
  }
}

function markOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(' ')
}
