const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/**
 * Milliseconds of the units that servers write after a number, although the grammar does not allow
 * them. Without a unit: seconds.
 */
const UNITS = new Map([
  ...['ms', 'msec', 'millisecond', 'milliseconds'].map((unit) => [unit, 1] as const),
  ...['', 's', 'sec', 'secs', 'second', 'seconds'].map((unit) => [unit, 1_000] as const),
  ...['m', 'min', 'mins', 'minute', 'minutes'].map((unit) => [unit, 60_000] as const),
  ...['h', 'hr', 'hrs', 'hour', 'hours'].map((unit) => [unit, 3_600_000] as const),
  ...['d', 'day', 'days'].map((unit) => [unit, 86_400_000] as const),
])

/** A number and its unit. Several may follow each other: `1m30s`. */
const PART = /((?:\d+(?:\.\d*)?|\.\d+)(?:e\+?\d{1,3})?)\s*([a-z]*)\.?\s*/giy

/**
 * From this number of seconds on, the value is not a wait but a time since 1970, which some servers
 * write.
 */
const EPOCH_SECONDS_MIN = 1_000_000_000

/**
 * From this number on, which would be 30,000 years in seconds, the value is milliseconds since
 * 1970.
 */
const EPOCH_MS_MIN = 1_000_000_000_000

/**
 * The wait of a `Retry-After` (RFC 9110, 10.2.3) in whole milliseconds, rounded up. It may be
 * seconds or a date. Servers also write fractions, units, dates of RFC 3339, and seconds or
 * milliseconds since 1970. If the header came several times, the longest wait counts, so that the
 * wait is never shorter than the server requested. Negative for a date in the past.
 *
 * @param now when the server answered, by its own clock, milliseconds
 * @returns undefined if no part of the value can be read
 */
export function readRetryAfter(value: string | undefined, now: number): number | undefined {
  // Dates have a comma behind the weekday; a header that came twice is joined by commas too.
  const items = (value ?? '').split(/(?<!(?:^|[\s,])(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*),/i)
  const waits = items.flatMap((item) => waitOf(bare(item), now) ?? [])
  return waits.length === 0 ? undefined : Math.ceil(Math.max(...waits))
}

/** The value without parameters, blanks and quotation marks around it. */
function bare(item: string): string {
  const [value = ''] = item.split(';')
  return value.trim().replace(/^"(.*)"$/, '$1')
}

function waitOf(item: string, now: number): number | undefined {
  const unsigned = item.replace(/^\+/, '')
  const parts = [...unsigned.matchAll(PART)]
  if (parts.length > 0 && parts.map(([part]) => part).join('') === unsigned) return sumOf(parts, now)
  const at = parseHttpDate(item)
  return at === undefined ? undefined : at - now
}

/** Undefined for an unknown unit, and for several numbers one of which has no unit. */
function sumOf(parts: RegExpExecArray[], now: number): number | undefined {
  let sum = 0
  for (const [, digits, unit = ''] of parts) {
    const unitMs = UNITS.get(unit.toLowerCase())
    if (unitMs === undefined || (unit === '' && parts.length > 1)) return undefined
    const value = Number(digits)
    if (unit === '' && value >= EPOCH_SECONDS_MIN) return value >= EPOCH_MS_MIN ? value - now : value * 1_000 - now
    sum += value * unitMs
  }
  return sum
}

/**
 * A date in any of HTTP's three forms (RFC 9110, 5.6.7) or in the form of RFC 3339, in milliseconds
 * since 1970. Without an offset it is GMT, whatever the time zone of this process. Undefined if the
 * text is not a date.
 */
export function parseHttpDate(text: string): number | undefined {
  const trimmed = text.trim()
  const [, day = '', month = '', year = '', time = '', zone = 'GMT'] =
    /^(?:[a-z]{3,9}(?:,\s*|\s+))?(\d{1,2})[\s-]([a-z]{3})[a-z]*[\s-](\d{2}|\d{4})\s+([\d:]+)\s*([a-z]{1,5}|[-+]\d{2}:?\d{2})?$/i.exec(
      trimmed,
    ) ?? []
  if (day !== '') return dateOf({ day, month, year, time, zone })
  const asctime = /^[a-z]{3}\s+([a-z]{3})\s+(\d{1,2})\s+([\d:]+)\s+(?:(?:GMT|UTC)\s+)?(\d{4})$/i.exec(trimmed)
  if (asctime) {
    const [, asctimeMonth = '', asctimeDay = '', asctimeTime = '', asctimeYear = ''] = asctime
    return dateOf({ day: asctimeDay, month: asctimeMonth, year: asctimeYear, time: asctimeTime, zone: 'GMT' })
  }
  const rfc3339 = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)\s*(Z|[-+]\d{2}:?\d{2})?$/i.exec(trimmed)
  if (!rfc3339) return undefined
  const parsed = Date.parse(`${rfc3339[1]}T${rfc3339[2]}Z`)
  return Number.isNaN(parsed) ? undefined : parsed - (offsetMs(rfc3339[3] ?? 'Z') ?? 0)
}

interface DateParts {
  day: string
  month: string
  year: string
  time: string
  zone: string
}

function dateOf({ day, month, year, time, zone }: DateParts): number | undefined {
  const monthIndex = MONTHS.indexOf(month.toLowerCase())
  const [, hour, minute, second = 0] = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(time) ?? []
  const offset = offsetMs(zone)
  if (monthIndex < 0 || hour === undefined || offset === undefined) return undefined
  if (Number(day) > 31 || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined
  return Date.UTC(fullYear(year), monthIndex, Number(day), Number(hour), Number(minute), Number(second)) - offset
}

/** A year of two digits that seems more than fifty years ahead is in the past (RFC 9110, 5.6.7). */
function fullYear(year: string): number {
  if (year.length === 4) return Number(year)
  const thisYear = new Date().getUTCFullYear()
  const inThisCentury = thisYear - (thisYear % 100) + Number(year)
  return inThisCentury > thisYear + 50 ? inThisCentury - 100 : inThisCentury
}

function offsetMs(zone: string): number | undefined {
  if (/^(GMT|UTC|UT|Z)$/i.test(zone)) return 0
  const [, sign, hours, minutes] = /^([-+])(\d{2}):?(\d{2})$/.exec(zone) ?? []
  if (sign === undefined) return undefined
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
}
