/** A sample of an OpenMetrics page. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  readonly exemplar: Readonly<Record<string, string>> | undefined
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABELS = String.raw`\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\}`
const NUMBER = String.raw`(?:[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|Inf)|NaN)`
const SAMPLE = new RegExp(
  `^(${NAME})(?:${LABELS})? (${NUMBER})(?: \\d+(?:\\.\\d+)?)?(?: # ${LABELS} ${NUMBER}(?: \\d+(?:\\.\\d+)?)?)?$`,
)
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total', '_created'],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count', '_created'],
  summary: ['', '_sum', '_count', '_created'],
}

/**
 * Parses a page strictly by the specification: the samples of a family follow its metadata together, no series is there
 * twice, suffixes fit the type, buckets only grow.
 * @throws Error with the wrong line
 */
export function parseOpenMetrics(text: string): readonly Sample[] {
  if (!text.endsWith('# EOF\n')) throw new Error('the page does not end with # EOF')
  const samples: Sample[] = []
  const seen = new Set<string>()
  const done = new Set<string>()
  let family = ''
  let type = ''
  for (const line of text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)) {
    const meta = /^# (HELP|TYPE|UNIT) (\S+) ?(.*)$/.exec(line)
    if (meta) {
      const [, what, name = '', value = ''] = meta
      if (name !== family) {
        if (done.has(name)) throw new Error(`family ${name} is exported twice`)
        done.add(name)
        family = name
        type = ''
      }
      if (what === 'TYPE') type = value
      continue
    }
    const match = SAMPLE.exec(line)
    if (!match) throw new Error(`not a sample: ${line}`)
    const [, name = '', labels = '', value = '', exemplar] = match
    const suffix = name.startsWith(family) ? name.slice(family.length) : undefined
    if (suffix === undefined || !SUFFIXES[type]?.includes(suffix))
      throw new Error(`not of the ${type} ${family}: ${line}`)
    const parsed = labelsOf(labels)
    const series = `${name}${JSON.stringify(Object.entries(parsed).toSorted())}`
    if (seen.has(series)) throw new Error(`twice: ${line}`)
    seen.add(series)
    if (exemplar !== undefined && exemplar.length > 128 + 20) throw new Error(`exemplar too long: ${line}`)
    const number = Number(value.replace('Inf', 'Infinity'))
    if (suffix === '_total' && !(number >= 0)) throw new Error(`a counter below 0: ${line}`)
    samples.push({
      name,
      labels: parsed,
      value: number,
      exemplar: exemplar === undefined ? undefined : labelsOf(exemplar),
    })
  }
  checkBuckets(samples)
  return samples
}

function checkBuckets(samples: readonly Sample[]): void {
  const last = new Map<string, { le: number; value: number }>()
  const counts = new Map<string, number>()
  for (const { name, labels, value } of samples) {
    const { le, ...rest } = labels
    const key = `${name.replace(/_(bucket|count)$/, '')}${JSON.stringify(Object.entries(rest).toSorted())}`
    if (name.endsWith('_count')) counts.set(key, value)
    if (!name.endsWith('_bucket') || le === undefined) continue
    const bound = Number(le.replace('Inf', 'Infinity'))
    const before = last.get(key)
    if (before && (before.le >= bound || before.value > value)) throw new Error(`buckets do not grow: ${key} ${le}`)
    last.set(key, { le: bound, value })
  }
  for (const [key, { le, value }] of last)
    if (le !== Infinity || counts.get(key) !== value) throw new Error(`+Inf is not the count: ${key}`)
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)].map(([, name = '', value = '']) => [
      name,
      value.replaceAll(/\\(["\\n])/g, (_, one: string) => (one === 'n' ? '\n' : one)),
    ]),
  )
}
