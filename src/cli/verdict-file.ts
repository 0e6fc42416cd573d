import { closeSync, createReadStream, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { replayLineSchema, type ReplayLine } from '../replay/replay-line.ts'
import { linesIn } from '../shared/text-lines.ts'

/** Verdicts on statements, one a line. An interrupted replay continues after the last complete line. */
export interface VerdictFile {
  /** The lines in the file. @throws Error with one line if the file has other content */
  before(): AsyncGenerator<ReplayLine>
  write(line: ReplayLine): void
  close(): void
}

/** @param path undefined: no file, and no earlier lines */
export function openVerdictFile(path: string | undefined): VerdictFile {
  // Only its user may read the file, because texts and rows may be in it.
  const file = path === undefined ? undefined : openSync(path, 'a+', 0o600)
  return {
    async *before() {
      if (path === undefined || file === undefined) return
      let number = 0
      let wrong: number | undefined
      let whole = 0
      for await (const line of linesIn(createReadStream(path))) {
        number++
        if (wrong !== undefined) throw strange(path, wrong)
        const read = lineOf(line)
        if (read) {
          whole += Buffer.byteLength(line) + 1
          yield read
        } else if (line.startsWith(BEGINNING) || BEGINNING.startsWith(line)) wrong = number
        else throw strange(path, number)
      }
      // Remove an incomplete last line, left by a process that was killed.
      if (wrong !== undefined) ftruncateSync(file, whole)
      else if (fstatSync(file).size < whole) writeSync(file, '\n')
    },
    write(line) {
      if (file !== undefined) writeSync(file, `${JSON.stringify(line)}\n`)
    },
    close() {
      if (file === undefined) return
      fsyncSync(file)
      closeSync(file)
    },
  }
}

function lineOf(text: string): ReplayLine | undefined {
  try {
    return replayLineSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

const BEGINNING = '{"queryId":'

function strange(path: string, number: number): Error {
  return new Error(`${path}:${number} is not a line of a replay: name another file`)
}
