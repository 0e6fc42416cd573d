import { closeSync, createReadStream, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { replayLineSchema, type ReplayLine, type VerdictCounts } from '../replay/replay-line.ts'

/** What came of statements, a line each; a replay that was ended goes on after the last whole line. */
export interface VerdictFile {
  /** Queries that have a line. @throws Error with one line for a file of something else */
  done(): AsyncGenerator<string>
  write(line: ReplayLine): void
  /** With those that the file had before. */
  countsWith(counts: VerdictCounts): VerdictCounts
  close(): void
}

/** @param path undefined: no file, and nothing done before */
export function openVerdictFile(path: string | undefined): VerdictFile {
  const before: Partial<Record<ReplayLine['verdict'], number>> = {}
  // For nobody but its user: texts and rows may be in it.
  const file = path === undefined ? undefined : openSync(path, 'a+', 0o600)
  return {
    async *done() {
      if (path === undefined || file === undefined) return
      let number = 0
      let wrong: number | undefined
      let whole = 0
      for await (const line of createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity })) {
        number++
        if (wrong !== undefined) throw strange(path, wrong)
        const read = lineOf(line)
        if (read) {
          whole += Buffer.byteLength(line) + 1
          before[read.verdict] = (before[read.verdict] ?? 0) + 1
          yield read.queryId
        } else if (line.startsWith(BEGINNING)) wrong = number
        else throw strange(path, number)
      }
      // Of a process that was killed in the middle of a line, that line goes.
      if (wrong !== undefined) ftruncateSync(file, whole)
    },
    write(line) {
      if (file !== undefined) writeSync(file, `${JSON.stringify(line)}\n`)
    },
    countsWith(counts) {
      const all = { ...before }
      for (const [name, count] of Object.entries(counts) as [ReplayLine['verdict'], number][])
        all[name] = (all[name] ?? 0) + count
      return all
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
  return new Error(`${path}:${number} is no line of a replay: name another file`)
}
