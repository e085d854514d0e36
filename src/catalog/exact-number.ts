/**
 * A decimal with this many digits always survives the conversion to a double and back (IEEE 754).
 */
const SURE_DIGITS_MAX = 15

/** The most digits that JavaScript can write of a double. */
const PRECISION_MAX = 100

/**
 * A decimal in the form in which JavaScript writes it: no exponent, no zero at the end of a
 * fraction, and not so small that JavaScript would write an exponent.
 */
const PLAIN = /^(?:0|-?[1-9]\d*|-?(?:0\.(?!00000)|[1-9]\d*\.)\d*[1-9])$/

/** The result of reading a JSON number as a double (RFC 8259, 6). */
export type NumberReading =
  /** The double has the same value, and JavaScript writes it like its sender. */
  | 'same-text'
  /** The double has the same value, but JavaScript writes it differently: `52.0`, `1e3`, `-0`. */
  | 'same-number'
  /** The double has another value: digits are lost, or the number is out of range. */
  | 'another-number'

/**
 * Compares a JSON number with the double that `JSON.parse` makes of it. A whole number beyond the
 * safe integers always counts as another number, even if its double is exact, because neighbouring
 * numbers have the same double.
 */
export function readingOf(text: string): NumberReading {
  if (text.length <= SURE_DIGITS_MAX && !/e/i.test(text)) return PLAIN.test(text) ? 'same-text' : 'same-number'
  const value = Number(text)
  if (!Number.isFinite(value)) return 'another-number'
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return 'another-number'
  const written = String(value)
  if (written === text) return 'same-text'
  if (canonical(written) === canonical(text)) return 'same-number'
  // Some programs write more digits than a double needs: 52.520000000000003 means 52.52.
  const digits = significantDigits(text)
  const isOfDouble = digits <= PRECISION_MAX && canonical(value.toPrecision(digits)) === canonical(text)
  return isOfDouble ? 'same-number' : 'another-number'
}

/**
 * Numbers such as `52.52`, `.5`, `52.` and `5e-7`. Not allowed: a plus sign, leading zeros,
 * hexadecimal digits, or more digits than a double can hold.
 */
const DECIMAL = /^-?((0|[1-9]\d{0,15})(\.\d{0,30})?|\.\d{1,30})(e[-+]?\d{1,2})?$/i

/**
 * A number with at most 15 digits and no exponent, whose double always has the same value (IEEE
 * 754).
 */
const SHORT_DECIMAL = /^-?(0|[1-9]\d{0,8})(\.\d{1,6})?$/

/** The number that a caller wrote as text; undefined if no double has its value. */
export function exactDecimal(text: string): number | undefined {
  return SHORT_DECIMAL.test(text) || isExactDecimal(text) ? exactNumber(Number(text)) : undefined
}

/** JSON does not allow `.5` and `52.` */
function isExactDecimal(text: string): boolean {
  return DECIMAL.test(text) && readingOf(text.replace(/^-?(?=\.)/, '$&0').replace(/\.(?!\d)/, '')) !== 'another-number'
}

/**
 * Undefined for a whole number if a neighbouring number has the same double. Adding zero turns -0
 * into 0, because JSON and query strings would show -0.
 */
export function exactNumber(value: number): number | undefined {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : value + 0
}

function significantDigits(text: string): number {
  return text
    .replace(/e.*$/i, '')
    .replace(/^-?[0.]*/, '')
    .replace('.', '').length
}

/**
 * Sign, digits without leading and trailing zeros, and exponent. All spellings of a number give the
 * same text.
 */
function canonical(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([-+]?\d+))?$/i.exec(text) ?? []
  const digits = whole + fraction
  // A loop, because a regular expression would take quadratic time for zeros that are not at the
  // end.
  let end = digits.length
  while (end > 0 && digits[end - 1] === '0') end -= 1
  let start = 0
  while (start < end && digits[start] === '0') start += 1
  if (start === end) return '0'
  return `${sign}${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`
}
