/** An address as it may be told of: user and password in it are secrets. What is no address with these is as it was. */
export function shownAddress(text: string): string {
  if (!text.includes('://') || !URL.canParse(text)) return text
  const url = new URL(text)
  if (url.username === '' && url.password === '') return text
  url.username = ''
  url.password = ''
  return url.href
}
