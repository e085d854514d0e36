import { memoizeRecent } from '../async/memoize.ts'

/**
 * Whether the text is YYYY-MM-DD and the day exists: 30 February would be read as a day of March.
 */
export function isCalendarDate(date: string): boolean {
  const time = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().slice(0, 10) === date
}

/** Names that are remembered: callers can make up any number. */
const NAMES_MAX = 1_000

/** The zones that the runtime lists, by their names in lower case. */
const listedZones = memoizeRecent(
  () => '',
  () => new Map(['UTC', ...Intl.supportedValuesOf('timeZone')].map((zone) => [zone.toLowerCase(), zone])),
  1,
)

/**
 * A formatter takes far longer to make than to use. Sweden writes dates as ISO 8601 does.
 *
 * @throws RangeError for no time zone
 */
const formatOf = memoizeRecent(
  (timeZone: string) => timeZone.toLowerCase(),
  (timeZone) => new Intl.DateTimeFormat('sv-SE', { timeZone }),
  NAMES_MAX,
)

/**
 * The usual spelling of the IANA time zone that a text names in any letter case. Links such as
 * `Asia/Kolkata`, which are not listed, stay as they are. Undefined for all other texts, also for
 * offsets such as +01:00.
 */
export function zoneNamed(name: string): string | undefined {
  const listed = listedZones().get(name.toLowerCase())
  if (listed !== undefined || !/^[a-z]/i.test(name)) return listed
  try {
    return formatOf(name) && name
  } catch {
    return undefined
  }
}

/**
 * Turns times, milliseconds since the epoch, into the date YYYY-MM-DD that a time zone has then.
 */
export function dateIn(timeZone: string): (time: number) => string {
  const format = formatOf(timeZone)
  return (time) => format.format(time)
}

/**
 * Local date (YYYY-MM-DD), time (HH:mm:ss), day of the week and daylight saving time of a zone at a
 * time, milliseconds.
 */
export function localTimeIn(
  timeZone: string,
  time: number,
): { date: string; time: string; dayOfWeek: string; isDst: boolean } {
  const clock = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  const offsetAt = (at: number): number => Date.parse(`${clock.format(at).replace(' ', 'T')}Z`) - at
  const [date = '', localTime = ''] = clock.format(time).split(' ')
  // In summer the clock is ahead of what it is in winter, on either hemisphere.
  const year = Number(date.slice(0, 4))
  const winter = Math.min(offsetAt(Date.UTC(year, 0, 1)), offsetAt(Date.UTC(year, 6, 1)))
  const dayOfWeek = new Intl.DateTimeFormat('en', { timeZone, weekday: 'long' }).format(time)
  return { date, time: localTime, dayOfWeek, isDst: offsetAt(time - (time % 1_000)) > winter }
}
