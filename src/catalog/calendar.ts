import { memoize } from '../async/memoize.ts'

/**
 * Whether the text is a date YYYY-MM-DD of a day that exists. (`Date` would read 30 February as a
 * day in March.)
 */
export function isCalendarDate(date: string): boolean {
  const time = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().slice(0, 10) === date
}

/**
 * The moment that a text names, whose first ten characters are a day of the calendar. Undefined for
 * other texts.
 */
export function momentOf(text: string): Date | undefined {
  const moment = new Date(text)
  return isCalendarDate(text.slice(0, 10)) && !Number.isNaN(moment.getTime()) ? moment : undefined
}

/**
 * Time zone names of the IANA database (2026) that the runtime accepts but does not list: links to
 * other zones, and zones with a fixed offset. The runtime also accepts names of its own, such as
 * IST and PST. They mean different zones in different places, and no upstream knows them.
 */
const UNLISTED_ZONES = `
  Africa/Asmara Africa/Timbuktu America/Argentina/Buenos_Aires America/Argentina/Catamarca
  America/Argentina/ComodRivadavia America/Argentina/Cordoba America/Argentina/Jujuy
  America/Argentina/Mendoza America/Atikokan America/Atka America/Ensenada America/Fort_Wayne
  America/Indiana/Indianapolis America/Kentucky/Louisville America/Knox_IN America/Montreal
  America/Nipigon America/Nuuk America/Pangnirtung America/Porto_Acre America/Rainy_River
  America/Rosario America/Santa_Isabel America/Shiprock America/Thunder_Bay America/Virgin
  America/Yellowknife Antarctica/South_Pole Asia/Ashkhabad Asia/Choibalsan Asia/Chongqing
  Asia/Chungking Asia/Dacca Asia/Harbin Asia/Ho_Chi_Minh Asia/Istanbul Asia/Kashgar Asia/Kathmandu
  Asia/Kolkata Asia/Macao Asia/Tel_Aviv Asia/Thimbu Asia/Ujung_Pandang Asia/Ulan_Bator Asia/Yangon
  Atlantic/Faroe Atlantic/Jan_Mayen Australia/ACT Australia/Canberra Australia/Currie
  Australia/LHI Australia/NSW Australia/North Australia/Queensland Australia/South
  Australia/Tasmania Australia/Victoria Australia/West Australia/Yancowinna Brazil/Acre
  Brazil/DeNoronha Brazil/East Brazil/West CET CST6CDT Canada/Atlantic Canada/Central
  Canada/Eastern Canada/Mountain Canada/Newfoundland Canada/Pacific Canada/Saskatchewan
  Canada/Yukon Chile/Continental Chile/EasterIsland Cuba EET EST EST5EDT Egypt Eire Etc/GMT
  Etc/GMT+0 Etc/GMT+1 Etc/GMT+10 Etc/GMT+11 Etc/GMT+12 Etc/GMT+2 Etc/GMT+3 Etc/GMT+4 Etc/GMT+5
  Etc/GMT+6 Etc/GMT+7 Etc/GMT+8 Etc/GMT+9 Etc/GMT-0 Etc/GMT-1 Etc/GMT-10 Etc/GMT-11 Etc/GMT-12
  Etc/GMT-13 Etc/GMT-14 Etc/GMT-2 Etc/GMT-3 Etc/GMT-4 Etc/GMT-5 Etc/GMT-6 Etc/GMT-7 Etc/GMT-8
  Etc/GMT-9 Etc/GMT0 Etc/Greenwich Etc/UCT Etc/UTC Etc/Universal Etc/Zulu Europe/Belfast
  Europe/Kyiv Europe/Nicosia Europe/Tiraspol Europe/Uzhgorod Europe/Zaporozhye GB GB-Eire GMT
  GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel Jamaica Japan Kwajalein Libya MET
  MST MST7MDT Mexico/BajaNorte Mexico/BajaSur Mexico/General NZ NZ-CHAT Navajo PRC PST8PDT
  Pacific/Chuuk Pacific/Johnston Pacific/Kanton Pacific/Pohnpei Pacific/Samoa Pacific/Yap Poland
  Portugal ROC ROK Singapore Turkey UCT US/Alaska US/Aleutian US/Arizona US/Central
  US/East-Indiana US/Eastern US/Hawaii US/Indiana-Starke US/Michigan US/Mountain US/Pacific
  US/Samoa Universal W-SU WET Zulu
`
  .trim()
  .split(/\s+/)

/** Most names that are remembered, because callers can send any number of names. */
const NAMES_MAX = 1_000

/** The zones of the IANA database, by their names in lower case. */
const knownZones = memoize(
  () => '',
  () =>
    new Map(
      ['UTC', ...UNLISTED_ZONES, ...Intl.supportedValuesOf('timeZone')].map((zone) => [zone.toLowerCase(), zone]),
    ),
  1,
)

/**
 * Formatters are kept, because making a formatter takes far longer than using it. The locale is
 * Swedish because its date format is ISO 8601.
 *
 * @throws RangeError if the text is not a time zone
 */
const formatOf = memoize(
  (timeZone: string) => timeZone.toLowerCase(),
  (timeZone) => new Intl.DateTimeFormat('sv-SE', { timeZone }),
  NAMES_MAX,
)

/**
 * The usual spelling of an IANA time zone that a text names in any letter case. Undefined for all
 * other texts, including offsets such as +01:00 and abbreviations such as PST.
 */
export function zoneNamed(name: string): string | undefined {
  const zone = knownZones().get(name.toLowerCase())
  try {
    return zone && formatOf(zone) && zone
  } catch {
    // An older runtime has an older database with fewer names.
    return undefined
  }
}

/**
 * Returns a function that turns a time (milliseconds since the epoch) into the date YYYY-MM-DD of
 * the zone.
 */
export function dateIn(timeZone: string): (time: number) => string {
  const format = formatOf(timeZone)
  return (time) => format.format(time)
}

/**
 * The date (YYYY-MM-DD), time (HH:mm:ss), day of the week and daylight saving time of a zone at a
 * time, milliseconds since the epoch.
 */
export function localTimeIn(
  timeZone: string,
  time: number,
): { date: string; time: string; dayOfWeek: string; isDst: boolean } {
  const clock = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  const offsetAt = (at: number): number => Date.parse(`${clock.format(at).replace(' ', 'T')}Z`) - at
  const [date = '', localTime = ''] = clock.format(time).split(' ')
  // On either hemisphere, the clock in summer is ahead of the clock in winter.
  const year = Number(date.slice(0, 4))
  const winter = Math.min(offsetAt(Date.UTC(year, 0, 1)), offsetAt(Date.UTC(year, 6, 1)))
  const dayOfWeek = new Intl.DateTimeFormat('en', { timeZone, weekday: 'long' }).format(time)
  return { date, time: localTime, dayOfWeek, isDst: offsetAt(time - (time % 1_000)) > winter }
}
