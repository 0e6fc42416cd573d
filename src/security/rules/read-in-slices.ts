/** The number of items that are read in one turn of the event loop. */
const SLICE = 100

/** Maps a list in slices, one slice a turn of the event loop. @param nextSlice resolves when other work has run */
export async function inSlices<A, B>(
  all: readonly A[],
  nextSlice: () => Promise<void>,
  make: (some: readonly A[]) => readonly B[],
): Promise<B[]> {
  const made: B[] = []
  for (let at = 0; at < all.length; at += SLICE) {
    await nextSlice()
    made.push(...make(all.slice(at, at + SLICE)))
  }
  return made
}
