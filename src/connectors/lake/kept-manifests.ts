import { closeSync, constants, fstatSync, open, read, type BigIntStats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { hasCode } from '../../shared/node-error.ts'
import type { TextTest } from './column-search.ts'
import { parseManifest, unreadable, type Manifest } from './manifest.ts'

/** A version as it was read; parsed once somebody wants it. */
interface KeptVersion {
  /** Tells the file from any other that is put in its place. */
  readonly file: string
  readonly bytes: number
  content: Buffer | Manifest
}

/** Versions by path: one never changes unless somebody replaces the whole folder, which its inode and time tell. */
const kept = new Map<string, KeptVersion>()
/** Bytes of their texts: 1,500 tables of 100 columns. */
const MAX_KEPT = 16 * 1024 * 1024
/** What a version takes beside its text: path, identity, entry. */
const KEPT_BESIDE = 512
let keptBytes = 0

// Those of `node:fs/promises` take half as much CPU again for a small file: they make a handle of each.
const openFile = promisify(open)
const readInto = promisify(read)

/**
 * The manifest at a path; undefined when nothing is there.
 * @param wanted a text that it refuses is not parsed: 'refused'. A manifest that is parsed already is not asked about
 * @throws EngineError HIVE_BAD_DATA when it cannot be read
 */
export async function manifestAt(path: string): Promise<Manifest | undefined>
export async function manifestAt(path: string, wanted?: TextTest): Promise<Manifest | 'refused' | undefined>
export async function manifestAt(path: string, wanted?: TextTest): Promise<Manifest | 'refused' | undefined> {
  const version = await keptVersion(path)
  if (!version) return undefined
  const { content } = version
  if (!Buffer.isBuffer(content)) return content
  if (wanted && !wanted(content)) return 'refused'
  return (version.content = parseManifest(content.toString(), path))
}

async function keptVersion(path: string): Promise<KeptVersion | undefined> {
  try {
    const known = kept.get(path)
    if (known && known.file === identity(await stat(path, { bigint: true }))) return known
    const version = await readVersion(path)
    keep(path, version)
    return version
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    // A folder, a link to itself, a socket.
    throw hasCode(error, 'EISDIR', 'ELOOP', 'ENXIO') ? unreadable(path, error) : error
  }
}

/** In two waits instead of the four of `readFile`: what `open` has looked up is told at once. */
async function readVersion(path: string): Promise<KeptVersion> {
  // A pipe is not waited for.
  const file = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stats = fstatSync(file, { bigint: true })
    const content = Buffer.allocUnsafeSlow(Number(stats.size))
    for (let at = 0; at < content.length;) {
      const { bytesRead } = await readInto(file, content, at, content.length - at, at)
      // Cut off since: it cannot be parsed.
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

function keep(path: string, version: KeptVersion): void {
  drop(path)
  kept.set(path, version)
  keptBytes += version.bytes + KEPT_BESIDE
  while (keptBytes > MAX_KEPT) drop(kept.keys().next().value!)
}

function drop(path: string): void {
  const version = kept.get(path)
  if (version && kept.delete(path)) keptBytes -= version.bytes + KEPT_BESIDE
}
