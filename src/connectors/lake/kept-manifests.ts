import { closeSync, constants, fstatSync, type BigIntStats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { hasCode } from '../../shared/node-error.ts'
import type { TextTest } from './column-search.ts'
import { unreadable, type Manifest } from './manifest.ts'
import { manifestOfText } from './manifest-of-text.ts'
import { openFile, readInto } from './open-files.ts'

/** A version as it was read; parsed at its first use. */
interface KeptVersion {
  /** Identifies the file: another file at its path has another identity. */
  readonly file: string
  readonly bytes: number
  content: Buffer | Manifest
}

/** Versions by path and folder. A version changes only if the whole folder is replaced; then its inode or time differs. */
const kept = new Map<string, KeptVersion>()
/** The largest size of all texts, bytes: 1,500 tables of 100 columns. */
const MAX_KEPT = 16 * 1024 * 1024
/** Bytes that a version takes besides its text: path, identity, entry. */
const KEPT_BESIDE = 512
let keptBytes = 0

/**
 * The manifest at a path; undefined when there is no file.
 * @param folder of the object, relative to the location
 * @param wanted a text that this rejects is not parsed: the result is 'refused'. Not called for a manifest that is
 * parsed already
 * @throws EngineError HIVE_BAD_DATA when the manifest cannot be read
 */
export async function manifestAt(path: string, folder: string): Promise<Manifest | undefined>
export async function manifestAt(
  path: string,
  folder: string,
  wanted?: TextTest,
): Promise<Manifest | 'refused' | undefined>
export async function manifestAt(
  path: string,
  folder: string,
  wanted?: TextTest,
): Promise<Manifest | 'refused' | undefined> {
  const version = await keptVersion(path, folder)
  if (!version) return undefined
  const { content } = version
  if (!Buffer.isBuffer(content)) return content
  if (wanted && !wanted(content)) return 'refused'
  return (version.content = manifestOfText(content.toString(), path, folder))
}

/**
 * Keeps a manifest that this process writes, so that its file is not read and parsed.
 * @param file the state of the file with the whole text. The file gets its path afterwards: a link or a rename changes
 *   none of the facts that identify a file
 */
export function keepWritten(path: string, folder: string, file: BigIntStats, manifest: Manifest): void {
  keep(keyOf(path, folder), { file: identity(file), bytes: Number(file.size), content: manifest })
}

/** If the location of one catalog is inside that of another, a path has a different folder in each. */
function keyOf(path: string, folder: string): string {
  return `${path}\0${folder}`
}

async function keptVersion(path: string, folder: string): Promise<KeptVersion | undefined> {
  const key = keyOf(path, folder)
  try {
    const known = kept.get(key)
    if (known && known.file === identity(await stat(path, { bigint: true }))) return known
    const version = await readVersion(path)
    keep(key, version)
    return version
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    // The path is a folder, a link to itself, or a socket.
    throw hasCode(error, 'EISDIR', 'ELOOP', 'ENXIO') ? unreadable(path, error) : error
  }
}

/** Reads a file with two waits instead of the four of `readFile`: `fstat` after `open` does not block for long. */
async function readVersion(path: string): Promise<KeptVersion> {
  // Opening a pipe must not block.
  const file = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stats = fstatSync(file, { bigint: true })
    const content = Buffer.allocUnsafeSlow(Number(stats.size))
    for (let at = 0; at < content.length;) {
      const { bytesRead } = await readInto(file, content, at, content.length - at, at)
      // The file was cut meanwhile: it cannot be parsed.
      if (bytesRead === 0) return { file: identity(stats), bytes: at, content: content.subarray(0, at) }
      at += bytesRead
    }
    return { file: identity(stats), bytes: content.length, content }
  } finally {
    closeSync(file)
  }
}

function identity({ ino, mtimeNs, size }: BigIntStats): string {
  return `${ino} ${mtimeNs} ${size}`
}

function keep(key: string, version: KeptVersion): void {
  drop(key)
  kept.set(key, version)
  keptBytes += version.bytes + KEPT_BESIDE
  while (keptBytes > MAX_KEPT) drop(kept.keys().next().value!)
}

function drop(key: string): void {
  const version = kept.get(key)
  if (version && kept.delete(key)) keptBytes -= version.bytes + KEPT_BESIDE
}
