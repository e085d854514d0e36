/** The known name that a misspelled name most likely stands for; undefined if none is close. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const given = plain(name)
  if (given === '') return undefined
  const errorsMax = given.length < 4 ? 0 : given.length < 8 ? 1 : 2
  // Names with one typing error are tried before names with two, so that the nearest name wins.
  const distances = Array.from({ length: errorsMax + 1 }, (_, errors) => errors)
  for (const errors of distances) {
    const near = known.find((candidate) => isWithin(errors, given, plain(candidate)))
    if (near !== undefined) return near
  }
  const stem = given.replace(/s$/, '')
  if (stem.length < 3) return undefined
  return known.find((candidate) => {
    const other = plain(candidate)
    return other.startsWith(stem) || (other.length >= 4 && given.startsWith(other))
  })
}

/** `expires_at` and `expiresAt` become equal. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}

/**
 * Whether two words differ by at most so many typing errors. An error is an extra, a missing or a
 * wrong letter, or two swapped neighbours (optimal string alignment distance).
 */
export function isWithin(errorsMax: number, one: string, other: string): boolean {
  if (Math.abs(one.length - other.length) > errorsMax) return false
  let before: number[] = []
  let previous = Array.from({ length: other.length + 1 }, (_, column) => column)
  for (let row = 1; row <= one.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[row - 1] === other[column - 1]
      const isSwapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      current[column] = Math.min(
        at(previous, column) + 1,
        at(current, column - 1) + 1,
        at(previous, column - 1) + (isSame ? 0 : 1),
        isSwapped ? at(before, column - 2) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    // From here on the distance can only grow.
    if (Math.min(...current) > errorsMax && Math.min(...previous) > errorsMax) return false
    before = previous
    previous = current
  }
  return at(previous, other.length) <= errorsMax
}

/** A bit for each letter of a word; all letters besides `a` to `z` share bits with others. */
export function lettersOf(word: string): number {
  let letters = 0
  for (let index = 0; index < word.length; index += 1) letters |= 1 << (word.charCodeAt(index) & 31)
  return letters
}

/**
 * Whether words with these letters can be within so many typing errors. Each error removes a
 * letter, adds a letter, or both. It rejects most words at a fraction of the cost of {@link
 * isWithin}.
 */
export function mayBeWithin(errorsMax: number, one: number, other: number): boolean {
  let differing = one ^ other
  for (let left = 2 * errorsMax; differing !== 0 && left > 0; left -= 1) differing &= differing - 1
  return differing === 0
}

const at = (row: number[], column: number): number => row[column] ?? Number.POSITIVE_INFINITY
