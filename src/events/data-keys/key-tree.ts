import { hash } from 'node:crypto'

/** Secrets of 32 bytes by their path from the root, one bit per level; null where a key was forgotten. */
export type Secrets = ReadonlyMap<string, Buffer | null>

/** The changes that forget a key: one secret is removed, and the secrets beside the path to the key are added. */
export interface Puncture {
  readonly removed: string
  readonly added: Secrets
}

const ZERO = Buffer.of(0)
const ONE = Buffer.of(1)

/**
 * 2^depth keys made from one secret: the two below a secret s are SHA-256(s ‖ 0) and SHA-256(s ‖ 1), a leaf is a key
 * (Goldreich, Goldwasser and Micali's tree). A secret gives all keys below it and none beside it. To forget one key,
 * the secret above it is replaced by the `depth` secrets beside the path to the key. So a million keys take 32 bytes,
 * and each can be forgotten alone.
 */
export class KeyTree {
  readonly depth: number
  readonly #secrets: Map<string, Buffer | null>
  /** Secrets on the path to the newest key: keys are mostly requested in order. */
  #path: (Buffer | undefined)[] = []
  #pathTo = 0
  #pathFrom = Infinity

  constructor(depth: number, secrets: Secrets) {
    this.depth = depth
    this.#secrets = new Map(secrets)
  }

  get secrets(): Secrets {
    return this.#secrets
  }

  /** Indexes of the forgotten keys. */
  get forgotten(): number[] {
    return [...this.#secrets].flatMap(([path, secret]) => (secret === null ? [Number.parseInt(path, 2)] : []))
  }

  /** Derives a key. @returns undefined for a key that was forgotten */
  key(index: number): Buffer | undefined {
    const shared = this.depth - bitLength(index ^ this.#pathTo)
    let at = shared >= this.#pathFrom ? shared : this.#begin(index)
    if (at === undefined) return undefined
    const path = this.#pathOf(index)
    for (; at < this.depth; at++) this.#path[at + 1] = below(this.#path[at]!, path[at]!)
    this.#pathTo = index
    return this.#path[this.depth]
  }

  /** Forgets a key. @returns undefined when it was forgotten before */
  forget(index: number): Puncture | undefined {
    const path = this.#pathOf(index)
    const above = this.#above(path)
    if (!above) return undefined
    const added = new Map<string, Buffer | null>([[path, null]])
    let secret = above.secret
    for (let at = above.path.length; at < this.depth; at++) {
      const bit = path[at]!
      const other = bit === '0' ? '1' : '0'
      added.set(path.slice(0, at) + other, below(secret, other))
      secret = below(secret, bit)
    }
    this.#secrets.delete(above.path)
    for (const [each, made] of added) this.#secrets.set(each, made)
    this.#path = []
    this.#pathFrom = Infinity
    return { removed: above.path, added }
  }

  #begin(index: number): number | undefined {
    const above = this.#above(this.#pathOf(index))
    if (!above) return undefined
    this.#pathFrom = above.path.length
    this.#path[this.#pathFrom] = above.secret
    return this.#pathFrom
  }

  #above(path: string): { readonly path: string; readonly secret: Buffer } | undefined {
    for (let length = 0; length <= this.depth; length++) {
      const secret = this.#secrets.get(path.slice(0, length))
      if (secret) return { path: path.slice(0, length), secret }
    }
    return undefined
  }

  #pathOf(index: number): string {
    return index.toString(2).padStart(this.depth, '0')
  }
}

function below(secret: Buffer, bit: string): Buffer {
  return hash('sha256', Buffer.concat([secret, bit === '0' ? ZERO : ONE]), 'buffer')
}

function bitLength(number: number): number {
  return 32 - Math.clz32(number)
}
