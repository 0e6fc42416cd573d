// Loaded into coordinator and workers: their wall clock is off by what a file says, in milliseconds; the file is read
// again every 20 ms. Monotonic clocks go on as they are, as when somebody sets a machine's time.
import { readFileSync } from 'node:fs'

const file = process.env.CHAOS_CLOCK_FILE
const RealDate = Date
const now = RealDate.now.bind(RealDate)
let shift = 0

function read() {
  try {
    shift = Number(readFileSync(file, 'utf8')) || 0
  } catch {
    // Not written yet.
  }
}

if (file) {
  read()
  setInterval(read, 20).unref()
  globalThis.Date = class Date extends RealDate {
    constructor(...parts) {
      if (parts.length === 0) super(now() + shift)
      else super(...parts)
    }

    static now() {
      return now() + shift
    }
  }
}
