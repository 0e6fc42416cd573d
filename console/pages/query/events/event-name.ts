/** The short name of a kind of events: `quipu.query.planned` is `query planned`. */
export function eventName(kind: string): string {
  return kind
    .replace(/^quipu\./, '')
    .replace('resultpages', 'result pages')
    .replaceAll('.', ' ')
}
