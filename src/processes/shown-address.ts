/** An address without its user and password, which are secrets. A text that is no such address stays unchanged. */
export function shownAddress(text: string): string {
  if (!text.includes('://') || !URL.canParse(text)) return text
  const url = new URL(text)
  if (url.username === '' && url.password === '') return text
  url.username = ''
  url.password = ''
  return url.href
}
