/** A constant or result of 64 bits, as two halves of 32 bits. */
export interface Halves {
  readonly high: number
  readonly low: number
}

// The same memory as one word and as halves: shifting a bigint would create a new bigint each time.
const whole = new BigInt64Array(1)
const parts = new Int32Array(whole.buffer)

export function halves(value: bigint): Halves {
  whole[0] = value
  return { high: parts[1]!, low: parts[0]! }
}

/**
 * A word of 64 bits with calculations in place, modulo 2^64; both halves are int32. The same with bigints takes ten
 * times as long.
 */
export class Word64 implements Halves {
  high = 0
  low = 0

  static of(value: bigint): Word64 {
    return new Word64().set(halves(value))
  }

  set({ high, low }: Halves): this {
    this.high = high | 0
    this.low = low | 0
    return this
  }

  add({ high, low }: Halves): this {
    const sum = (this.low >>> 0) + (low >>> 0)
    this.high = (this.high + high + (sum > 0xffffffff ? 1 : 0)) | 0
    this.low = sum | 0
    return this
  }

  xor({ high, low }: Halves): this {
    this.high ^= high
    this.low ^= low
    return this
  }

  multiply({ high, low }: Halves): this {
    // The upper half of the product of the lower halves is calculated from products of 16 bits.
    const [a, b] = [this.low & 0xffff, this.low >>> 16]
    const [c, d] = [low & 0xffff, low >>> 16]
    const [ac, bc, ad] = [Math.imul(a, c) >>> 0, Math.imul(b, c) >>> 0, Math.imul(a, d) >>> 0]
    const middle = (ac >>> 16) + (bc & 0xffff) + (ad & 0xffff)
    const upper = Math.imul(b, d) + (bc >>> 16) + (ad >>> 16) + (middle >>> 16)
    this.high = (upper + Math.imul(this.high, low) + Math.imul(this.low, high)) | 0
    this.low = Math.imul(this.low, low)
    return this
  }

  /** Rotates to the left, by less than 64 bits. */
  rotate(bits: number): this {
    let { high, low } = this
    if (bits >= 32) [high, low] = [low, high]
    const rest = bits & 31
    if (rest !== 0) [high, low] = [(high << rest) | (low >>> (32 - rest)), (low << rest) | (high >>> (32 - rest))]
    this.high = high
    this.low = low
    return this
  }

  /** Replaces the word by itself xor itself shifted to the right, by 1 to 63 bits. */
  fold(bits: number): this {
    const { high, low } = this
    if (bits >= 32) this.low = low ^ (high >>> (bits - 32))
    else {
      this.low = low ^ ((low >>> bits) | (high << (32 - bits)))
      this.high = high ^ (high >>> bits)
    }
    return this
  }

  /** Reads eight bytes, the lowest first. */
  read(bytes: Uint8Array, at: number): this {
    this.low = int32(bytes, at)
    this.high = int32(bytes, at + 4)
    return this
  }

  /** The word as a signed number. */
  toBigInt(): bigint {
    parts[0] = this.low
    parts[1] = this.high
    return whole[0]!
  }

  /** Writes its bytes, the highest first. */
  writeBigEndian(bytes: Uint8Array, at: number): void {
    for (let i = 0; i < 4; i++) {
      bytes[at + i] = this.high >>> (24 - 8 * i)
      bytes[at + 4 + i] = this.low >>> (24 - 8 * i)
    }
  }

  writeLittleEndian(bytes: Uint8Array, at: number): void {
    for (let i = 0; i < 4; i++) {
      bytes[at + i] = this.low >>> (8 * i)
      bytes[at + 4 + i] = this.high >>> (8 * i)
    }
  }
}

/** A 32-bit number from four bytes, the lowest first. */
export function int32(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}
