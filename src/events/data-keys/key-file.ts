import {
  closeSync,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { MisconfiguredLog } from '../event-log.ts'
import type { KeyBlock } from './key-block.ts'
import { KeyTree } from './key-tree.ts'
import { hasCode } from '../../shared/node-error.ts'
import { parseJson } from '../../shared/parse-json.ts'

const lineSchema = z.object({
  block: z.string(),
  log: z.string(),
  epoch: z.number().int(),
  depth: z.number().int().min(1).max(30),
  /** Secrets in base64, by path; null for a forgotten key. */
  secrets: z.record(z.string(), z.string().nullable()),
})

/**
 * Reads the key blocks of a data folder, for any logs; none when there is no file yet.
 * @throws MisconfiguredLog when the file is not a key file
 */
export function readKeyFile(path: string): KeyBlock[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw new MisconfiguredLog(`The data keys in ${path} cannot be read: ${(error as Error).message}`)
  }
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line, index) => {
      const parsed = lineSchema.safeParse(parseJson(line))
      if (!parsed.success) throw new MisconfiguredLog(`Line ${index + 1} of ${path} is not a block of data keys`)
      const { block: id, log, epoch, depth, secrets } = parsed.data
      const entries = Object.entries(secrets).map(([at, secret]) => [at, secret === null ? null : fromBase64(secret)])
      return { id, log, epoch, tree: new KeyTree(depth, new Map(entries as [string, Buffer | null][])) }
    })
}

/** Replaces the whole file durably, so that forgotten keys are not in it any more. */
export function writeKeyFile(path: string, blocks: Iterable<KeyBlock>): void {
  const lines = [...blocks].map(({ id: block, log, epoch, tree }) => {
    const secrets = Object.fromEntries(
      [...tree.secrets].map(([at, secret]) => [at, secret?.toString('base64') ?? null]),
    )
    return `${JSON.stringify({ block, log, epoch, depth: tree.depth, secrets } satisfies z.infer<typeof lineSchema>)}\n`
  })
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const made = `${path}.${process.pid}`
  const file = openSync(made, 'w', 0o600)
  try {
    writeFileSync(file, lines.join(''))
    const { uid, gid } = statSync(dirname(path))
    // When an administrator (root) writes it, the file must still belong to the server.
    if (uid !== process.getuid?.() && process.getuid?.() === 0) fchownSync(file, uid, gid)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(made, path)
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

function fromBase64(text: string): Buffer {
  return Buffer.from(text, 'base64')
}
