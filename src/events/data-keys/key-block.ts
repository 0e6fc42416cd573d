import { randomBytes } from 'node:crypto'
import { KeyTree, type Secrets } from './key-tree.ts'

/** Depth of a block's tree: it holds the keys of 2^20 queries. */
export const BLOCK_DEPTH = 20

/** Keys for the queries of one epoch. */
export interface KeyBlock {
  readonly id: string
  /** The topic whose events these keys encrypt. */
  readonly log: string
  /** The epoch whose one writer gives the keys out, so that no two queries get the same key. */
  readonly epoch: number
  readonly tree: KeyTree
}

export function makeKeyBlock(log: string, epoch: number, depth = BLOCK_DEPTH): KeyBlock {
  const root: Secrets = new Map([['', randomBytes(32)]])
  return { id: randomBytes(6).toString('base64url'), log, epoch, tree: new KeyTree(depth, root) }
}

/** `block.index`: the name of a key in an event. */
export type KeyName = string

export function keyName(block: string, index: number): KeyName {
  return `${block}.${index}`
}

/** Parses the name of a key. @returns undefined when the text was not written by `keyName` */
export function parseKeyName(name: KeyName): { readonly block: string; readonly index: number } | undefined {
  const match = /^([\w-]+)\.(\d{1,9})$/.exec(name)
  return match ? { block: match[1]!, index: Number(match[2]) } : undefined
}
