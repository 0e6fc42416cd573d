import { element, writeDocument, type PageElement, type PagePart } from '../shared/page-elements.ts'
import { outcomeText } from './outcome-text.ts'
import { differentIn } from './bad-verdicts.ts'
import type { ReplayLine, VerdictName } from './replay-line.ts'
import type { Tally } from './tally.ts'

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
  ['UNCONFIRMED', 'Not confirmed'],
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
  const bad = differentIn(counts)
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
    element('summary', {}, element('code', {}, line.queryId), ` ${line.createdAt}${byUser}: ${outcomeText(line)}`),
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
