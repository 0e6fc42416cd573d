import { BAD_VERDICTS } from '../../../../src/replay/bad-verdicts.ts'
import { outcomeText } from '../../../../src/replay/outcome-text.ts'
import type { ReplayLine } from '../../../../src/replay/replay-line.ts'

/** The lines of a file that the page shows. */
export interface ReadVerdicts {
  /** The number of lines for each verdict, in the whole file. */
  readonly counts: ReadonlyMap<string, number>
  /** The number of lines that match the filter. */
  readonly matching: number
  /** The first `MOST_LINES` lines that match. */
  readonly lines: readonly ShownVerdict[]
  /** The number of lines that hold no verdict. */
  readonly unknown: number
}

export interface ShownVerdict {
  readonly line: ReplayLine
  readonly outcome: string
}

export interface VerdictFilter {
  /** A verdict; empty for all, `BAD` for those that mean that the servers differ. */
  readonly verdict: string
  /** Found in the id, user, program, fingerprint, outcome or text of the statement, in any case. */
  readonly text: string
}

/** The most lines that the page holds. */
export const MOST_LINES = 1000

/** Reads a file of `quipu replay --json` or `quipu shadow --json`. The memory does not depend on the size of the file. */
export async function readVerdicts(file: Blob, filter: VerdictFilter): Promise<ReadVerdicts> {
  const counts = new Map<string, number>()
  const lines: ShownVerdict[] = []
  let [matching, unknown] = [0, 0]
  for await (const text of linesOf(file)) {
    const line = parsed(text)
    if (!line) {
      unknown++
      continue
    }
    counts.set(line.verdict, (counts.get(line.verdict) ?? 0) + 1)
    const shown = { line, outcome: outcomeOf(line) }
    if (!matches(shown, filter)) continue
    matching++
    if (lines.length < MOST_LINES) lines.push(shown)
  }
  return { counts, matching, lines, unknown }
}

async function* linesOf(file: Blob): AsyncGenerator<string> {
  const reader = file.stream().getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    const lines = (rest + (value ? decoder.decode(value, { stream: true }) : decoder.decode())).split('\n')
    rest = lines.pop() ?? ''
    yield* lines.filter((line) => line.trim() !== '')
    if (!done) continue
    if (rest.trim() !== '') yield rest
    return
  }
}

/** The parsed line; undefined for any other text, such as an incomplete last line. */
function parsed(text: string): ReplayLine | undefined {
  try {
    const line = JSON.parse(text) as Partial<ReplayLine> | null
    return typeof line?.queryId === 'string' && typeof line.verdict === 'string' ? (line as ReplayLine) : undefined
  } catch {
    return undefined
  }
}

/** The outcome in words; as JSON for a verdict of a later version. */
function outcomeOf(line: ReplayLine): string {
  try {
    return outcomeText(line) ?? JSON.stringify(line)
  } catch {
    return JSON.stringify(line)
  }
}

function matches({ line, outcome }: ShownVerdict, { verdict, text }: VerdictFilter): boolean {
  if (verdict === 'BAD' ? !BAD_VERDICTS.includes(line.verdict) : verdict !== '' && line.verdict !== verdict)
    return false
  if (text === '') return true
  const { queryId, thereQueryId, user, app, fingerprint, sql } = line
  const searched = [queryId, thereQueryId, user, app, fingerprint, sql, outcome].join('\n').toLowerCase()
  return searched.includes(text.toLowerCase())
}
