/** Whether the text is YYYY-MM-DD and the day exists: 30 February would be read as a day of March. */
export function isCalendarDate(date: string): boolean {
  const time = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().slice(0, 10) === date
}

/** Whether the text names an IANA time zone, in any letter case; offsets such as +01:00 do not. */
export function isTimeZone(name: string): boolean {
  try {
    return /^[a-z]/i.test(name) && new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined
  } catch {
    return false
  }
}

/** Turns times, milliseconds since the epoch, into the date YYYY-MM-DD that a time zone has then. */
export function dateIn(timeZone: string): (time: number) => string {
  // Sweden writes dates as ISO 8601 does.
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone })
  return (time) => format.format(time)
}
