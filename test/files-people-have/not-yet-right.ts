/** Cases whose answer is not right yet, each with its class. A case leaves the list with the change that makes it right. */
export const notYetRight: Readonly<Record<string, string>> = {
  rn1: 'rename',
}
