/** So many digits always survive the way through a double and back (IEEE 754). */
const SURE_DIGITS_MAX = 15

/** The most digits that JavaScript writes of a double. */
const PRECISION_MAX = 100

/**
 * A decimal as JavaScript writes it: no exponent, no zero at its end, and not so small that it
 * would get an exponent.
 */
const PLAIN = /^(?:0|-?[1-9]\d*|-?(?:0\.(?!00000)|[1-9]\d*\.)\d*[1-9])$/

/** What becomes of a number of JSON that is read as a double (RFC 8259, 6). */
export type NumberReading =
  /** The double is the number, and JavaScript writes it as its sender did. */
  | 'same-text'
  /** The double is the number, which JavaScript writes in another way: `52.0`, `1e3`, `-0`. */
  | 'same-number'
  /** The double is another number: digits are lost, or it is beyond the range. */
  | 'another-number'

/**
 * Compares a number of JSON with the double that `JSON.parse` makes of it. A whole number beyond
 * the safe integers counts as another number even when its double is exact, because a neighbour of
 * it has the same double.
 */
export function readingOf(text: string): NumberReading {
  if (text.length <= SURE_DIGITS_MAX && !/e/i.test(text)) return PLAIN.test(text) ? 'same-text' : 'same-number'
  const value = Number(text)
  if (!Number.isFinite(value)) return 'another-number'
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return 'another-number'
  const written = String(value)
  if (written === text) return 'same-text'
  if (canonical(written) === canonical(text)) return 'same-number'
  // Some programs write more digits of a double than tell it from others: 52.520000000000003 is
  // 52.52.
  const digits = significantDigits(text)
  const isOfDouble = digits <= PRECISION_MAX && canonical(value.toPrecision(digits)) === canonical(text)
  return isOfDouble ? 'same-number' : 'another-number'
}

function significantDigits(text: string): number {
  return text
    .replace(/e.*$/i, '')
    .replace(/^-?[0.]*/, '')
    .replace('.', '').length
}

/** Sign, digits without zeros around them, and exponent: one text for all spellings of a number. */
function canonical(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([-+]?\d+))?$/i.exec(text) ?? []
  const digits = whole + fraction
  // By hand, because a regular expression takes quadratic time if zeros are not at the end.
  let end = digits.length
  while (end > 0 && digits[end - 1] === '0') end -= 1
  let start = 0
  while (start < end && digits[start] === '0') start += 1
  if (start === end) return '0'
  return `${sign}${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`
}
