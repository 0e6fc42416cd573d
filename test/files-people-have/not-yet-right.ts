/**
 * Cases with a wrong answer, each with its class. The change that corrects the answer removes the case from this
 * list.
 */
export const notYetRight: Readonly<Record<string, string>> = {
  rn1: 'rename',
}
