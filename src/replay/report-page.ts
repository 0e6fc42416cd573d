import { element, writeDocument, type PageElement, type PagePart } from '../shared/page-elements.ts'
import type { ReplayLine, VerdictName } from './replay-line.ts'
import type { Tally } from './tally.ts'
import { skipReasons, type Chance, type Difference } from './verdict.ts'

export interface Report {
  /** Addresses of the two servers. */
  readonly baseline: string
  readonly against: string
  /** ISO UTC. */
  readonly at: string
  readonly tally: Tally
}

/** The most interesting verdicts come first. */
const ORDER = [
  ['DIFFERENT', 'Different results'],
  ['FAILED_THERE', 'Failed there, but not here'],
  ['FAILED_HERE', 'Failed here, but not there'],
  ['DATA_MOVED', 'Different, because the tables changed'],
  ['NON_DETERMINISTIC', 'Different, but allowed to differ'],
  ['SAME_OTHER_ORDER', 'The same rows in another order'],
  ['FAILED_BOTH', 'Failed on both'],
  ['SKIPPED', 'Not run'],
  ['SAME', 'The same'],
] as const satisfies readonly (readonly [VerdictName, string])[]

const STYLE = [
  'body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }',
  'table { border-collapse: collapse } th, td { border-bottom: 1px solid #ccc; padding: .2rem 1rem .2rem 0; text-align: left }',
  'pre { background: #f4f4f4; overflow: auto; padding: .5rem; white-space: pre-wrap } section { margin-bottom: 2rem }',
  'td.count { text-align: right } .here { color: #06c } .there { color: #b40 }',
  '@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } pre { background: #262626 } }',
].join(' ')

/** A page of HTML in one file, without scripts and without external content. */
export function reportPage(report: Report): string {
  const { tally, baseline, against, at } = report
  const found = ORDER.filter(([verdict]) => (tally.counts[verdict] ?? 0) > 0)
  const policy = "default-src 'none'; style-src 'unsafe-inline'"
  return writeDocument(
    element(
      'html',
      { lang: 'en' },
      element(
        'head',
        {},
        element('meta', { charset: 'utf-8' }),
        element('meta', { 'http-equiv': 'content-security-policy', content: policy }),
        element('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
        element('title', {}, 'Replay'),
        element('style', {}, STYLE),
      ),
      element(
        'body',
        {},
        element('h1', {}, headline(tally)),
        element('p', {}, `Here: ${baseline}. There: ${against}. Ended ${at}.`),
        element('table', {}, ...found.map(([verdict, title]) => countRow(title, verdict, tally))),
        ...speedSection(tally),
        ...found.flatMap(([verdict, title]) => (verdict === 'SAME' ? [] : [sectionOf(title, verdict, tally)])),
      ),
    ),
  )
}

function headline({ counts }: Tally): string {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const bad = (counts.DIFFERENT ?? 0) + (counts.FAILED_THERE ?? 0) + (counts.FAILED_HERE ?? 0)
  return bad === 0 ? `Nothing is different: ${all} statements` : `${bad} of ${all} statements are different`
}

function countRow(title: string, verdict: VerdictName, { counts }: Tally): PageElement {
  return element(
    'tr',
    {},
    element('td', { class: 'count' }, String(counts[verdict] ?? 0)),
    element('td', {}, element('a', verdict === 'SAME' ? {} : { href: `#${verdict}` }, title)),
    element('td', {}, element('code', {}, verdict)),
  )
}

function sectionOf(title: string, verdict: VerdictName, tally: Tally): PageElement {
  const lines = tally.linesOf(verdict)
  const count = tally.counts[verdict] ?? 0
  const more = count > lines.length ? [element('p', {}, `The first ${lines.length} of ${count}.`)] : []
  return element('section', { id: verdict }, element('h2', {}, title), ...more, ...lines.map(entryOf))
}

function entryOf(line: ReplayLine): PageElement {
  const byUser = line.user === undefined ? '' : `, ${line.user}`
  const took = line.hereMs === undefined || line.thereMs === undefined ? [] : [timesOf(line.hereMs, line.thereMs)]
  return element(
    'details',
    line.verdict === 'DIFFERENT' ? { open: '' } : {},
    element('summary', {}, element('code', {}, line.queryId), ` ${line.createdAt}${byUser}: ${whatOf(line)}`),
    ...(line.sql === undefined ? [] : [element('pre', {}, line.sql)]),
    ...took,
    ...examplesOf(line),
  )
}

function timesOf(hereMs: number, thereMs: number): PageElement {
  return element('p', {}, `${Math.round(hereMs)} ms here, ${Math.round(thereMs)} ms there.`)
}

/** Differences in speed beyond noise, slower ones first. */
function speedSection({ speeds }: Tally): readonly PageElement[] {
  const { slower, faster, lines } = speeds
  if (slower + faster === 0) return []
  const more = slower + faster > lines.length ? [element('p', {}, `The first ${lines.length} of them.`)] : []
  const rows = lines
    .toSorted((a, b) => ratioOf(b) - ratioOf(a))
    .map(({ queryId, speed }) =>
      element(
        'tr',
        { class: speed?.kind === 'slower' ? 'there' : 'here' },
        element('td', {}, element('code', {}, queryId)),
        element('td', { class: 'count' }, `${Math.round(speed?.hereMs ?? 0)} ms here`),
        element('td', { class: 'count' }, `${Math.round(speed?.thereMs ?? 0)} ms there`),
      ),
    )
  const title = `${slower} slower there, ${faster} faster there, by more than noise`
  return [element('section', { id: 'speed' }, element('h2', {}, title), ...more, element('table', {}, ...rows))]
}

function ratioOf({ speed }: ReplayLine): number {
  return speed ? speed.thereMs / speed.hereMs : 1
}

function examplesOf({ examples = [] }: ReplayLine): readonly PagePart[] {
  if (examples.length === 0) return []
  const rows = examples.map(({ side, row }) =>
    element(
      'tr',
      { class: side },
      element('th', {}, side === 'here' ? 'only here' : 'only there'),
      ...row.map((value) => element('td', {}, value ?? 'NULL')),
    ),
  )
  return [element('table', {}, ...rows)]
}

function whatOf(line: ReplayLine): string {
  switch (line.verdict) {
    case 'SAME':
      return 'the same'
    case 'SAME_OTHER_ORDER':
      return 'the same rows in another order'
    case 'DIFFERENT':
      return differenceText(line.difference)
    case 'NON_DETERMINISTIC':
      return `${chanceText(line.chance)}; ${differenceText(line.difference)}`
    case 'DATA_MOVED':
      return `${line.tables.join(', ')}; ${differenceText(line.difference)}`
    case 'FAILED_THERE':
      return `${line.there.name}: ${line.there.message}`
    case 'FAILED_HERE':
      return `${line.here.name}: ${line.here.message}`
    case 'FAILED_BOTH':
      return line.here.name === line.there.name
        ? `${line.here.name}: ${line.here.message}`
        : `here ${line.here.name}: ${line.here.message}; there ${line.there.name}: ${line.there.message}`
    case 'SKIPPED':
      return skipReasons[line.reason]
  }
}

function differenceText(difference: Difference): string {
  switch (difference.kind) {
    case 'columns':
      return `columns here ${difference.here.join(', ')}; there ${difference.there.join(', ')}`
    case 'rows':
      return `${difference.here} rows here, ${difference.there} there`
    case 'values':
      return difference.names.length === 0
        ? 'the same values in other rows'
        : `different values in ${difference.names.join(', ')}`
    case 'floating':
      return `different numbers in ${difference.names.join(', ')}`
    case 'plan':
      return `the plans differ from node ${1 + firstUnlike(difference)} on`
  }
}

function firstUnlike({ here, there }: Extract<Difference, { kind: 'plan' }>): number {
  const at = here.findIndex((line, index) => line !== there[index])
  return at < 0 ? here.length : at
}

function chanceText(chance: Chance): string {
  switch (chance.kind) {
    case 'repeated':
      return 'the baseline gives another answer each time'
    case 'tie':
      return 'a LIMIT cuts between rows with the same sort values'
    case 'limit':
      return 'a LIMIT without an order'
    case 'functions':
      return `the statement calls ${chance.names.join(', ')}`
    case 'clock':
      return `the statement reads the clock: ${chance.names.join(', ')}`
    case 'server':
      return `the statement reads data about the server: ${chance.names.join(', ')}`
  }
}
