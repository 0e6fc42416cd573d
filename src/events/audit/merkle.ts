import { hash } from 'node:crypto'

/**
 * Root of a Merkle tree as in RFC 6962: leaves and inner nodes are hashed under different prefixes, and the left half
 * is the largest full one. A number of hashes logarithmic in the leaves proves that an anchor contains a stream head.
 * @param leaves in their order
 * @returns 64 hex digits
 */
export function merkleRoot(leaves: readonly string[]): string {
  let level = leaves.map((leaf) => sha256(Buffer.concat([LEAF, Buffer.from(leaf)])))
  if (level.length === 0) return hash('sha256', '')
  while (level.length > 1) {
    const above: Buffer[] = []
    for (let index = 0; index < level.length; index += 2) {
      const [left, right] = [level[index]!, level[index + 1]]
      // A node without a neighbour moves up unchanged: this gives the same tree as the recursive definition.
      above.push(right ? sha256(Buffer.concat([NODE, left, right])) : left)
    }
    level = above
  }
  return level[0]!.toString('hex')
}

const LEAF = Buffer.from([0])
const NODE = Buffer.from([1])

function sha256(bytes: Buffer): Buffer {
  return hash('sha256', bytes, 'buffer')
}
