import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasCode } from '../../shared/node-error.ts'
import { parseNodeId, type NodeId } from '../../shared/ids.ts'

/** The id of the worker that owns a folder: made at the worker's first start, the same after every restart. */
export function nodeIdOf(folder: string): NodeId {
  const path = join(folder, 'node-id')
  try {
    const id = readFileSync(path, 'utf8').trim()
    if (/^[\w-]{1,64}$/.test(id)) return parseNodeId(id)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
  const id = parseNodeId(`worker-${randomBytes(5).toString('hex')}`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(path, `${id}\n`)
  return id
}
