import { readdirSync, readFileSync, statSync, type Stats } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
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

export interface WatchOptions<X, T> {
  /** The value that the previous process had in force. It stays in force while the files cannot be read. */
  readonly before?: () => { readonly value: T } | undefined
  /** As `read`, for a change; the value is in force once this resolves. */
  readonly readAgain?: (texts: X, before: T) => Promise<T>
}

/** Files to watch: their marks, which change with the files, and their texts. */
interface TextSource<X> {
  marksNow(): string
  marks(): Promise<string>
  textsNow(): X
  texts(): Promise<X>
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
  options: WatchOptions<Texts<P>, T> = {},
): WatchedFiles<T> {
  const source: TextSource<Texts<P>> = {
    marksNow: () => paths.map(markNow).join(),
    marks: () => marksAt(paths),
    textsNow: () => paths.map((path) => readFileSync(path, 'utf8')) as unknown as Texts<P>,
    texts: async () => (await Promise.all(paths.map((path) => readFile(path, 'utf8')))) as unknown as Texts<P>,
  }
  return watchSource(source, read, news, options)
}

/**
 * As `watchFiles`, for all files of a folder whose names end in `.json` and begin with no dot.
 * @param read makes the value from a JSON object with the text of each file, by file name
 * @param also further files, of which a change counts too
 */
export function watchFolder<T>(
  folder: string,
  also: () => readonly string[],
  read: (text: string) => T,
  news: FileNews,
  options: WatchOptions<string, T> = {},
): WatchedFiles<T> {
  const pathsOf = (names: readonly string[]): string[] => [...names.map((name) => join(folder, name)), ...also()]
  const source: TextSource<string> = {
    marksNow() {
      try {
        const names = jsonNames(readdirSync(folder))
        return [...names, ...pathsOf(names).map(markNow)].join()
      } catch (error) {
        return nodeCode(error) ?? 'unknown'
      }
    },
    async marks() {
      const entries = await readdir(folder).catch((error: unknown) => nodeCode(error) ?? 'unknown')
      if (typeof entries === 'string') return entries
      const names = jsonNames(entries)
      return [...names, await marksAt(pathsOf(names))].join()
    },
    textsNow: () => readFolder(folder),
    async texts() {
      const names = jsonNames(await readdir(folder))
      return folderText(
        await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)),
      )
    },
  }
  return watchSource(source, read, news, options)
}

/** The texts of all `.json` files of a folder, as `watchFolder` reads them. @throws Error when it cannot be read */
export function readFolder(folder: string): string {
  const names = jsonNames(readdirSync(folder))
  return folderText(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

function watchSource<X, T>(
  source: TextSource<X>,
  read: (texts: X) => T,
  news: FileNews,
  { before, readAgain }: WatchOptions<X, T>,
): WatchedFiles<T> {
  let seen = source.marksNow()
  let value: T
  try {
    value = read(source.textsNow())
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
    const mark = await source.marks()
    if (mark === seen || mark !== fresh) {
      fresh = mark
      return
    }
    if (!allowance.take(performance.now())) return
    seen = mark
    const texts = await source.texts()
    if ((await source.marks()) !== mark) return
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

function jsonNames(entries: readonly string[]): string[] {
  return entries.filter((name) => name.endsWith('.json') && !name.startsWith('.')).toSorted()
}

function folderText(texts: readonly (readonly [string, string])[]): string {
  return JSON.stringify(Object.fromEntries(texts))
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
