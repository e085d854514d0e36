import { zoneNamed } from './calendar.ts'

/**
 * Whether a text can be the name of a parameter: letters, digits and the few signs that APIs use
 * (`filter[status]`, `$top`). Answers may repeat such a text, because nobody can take it for a
 * sentence.
 */
export const isParameterName = (text: string): boolean => /^[\p{L}\p{N}$_][\p{L}\p{N}$_.:[\]-]{0,99}$/u.test(text)

/**
 * A parameter fits its schema but cannot be used. `reason` completes the message "Parameter x is
 * invalid: …".
 */
export class InvalidParameter extends Error {
  readonly parameter: string | undefined
  readonly reason: string

  constructor(parameter: string | undefined, reason: string) {
    super(`Parameter ${parameter ?? ''} is invalid: ${reason}`)
    this.name = 'InvalidParameter'
    this.parameter = parameter
    this.reason = reason
  }
}

/**
 * Removes the blanks around a text parameter and brings it into the Unicode form NFC, in which
 * sources store names. Two spellings of a text then share one stored answer.
 *
 * @throws InvalidParameter if nothing is left, or if the text holds half a surrogate pair, which no
 *   URL can carry
 */
export function trimmed(parameter: string, value: string): string {
  const text = value.trim().normalize()
  if (text === '') throw new InvalidParameter(parameter, 'it is blank')
  if (!text.isWellFormed()) throw new InvalidParameter(parameter, 'it is not well-formed Unicode')
  return text
}

/** As `trimmed`, with single spaces between the words. */
export function singleSpaced(parameter: string, value: string): string {
  return trimmed(parameter, value).replace(/\s+/g, ' ')
}

/**
 * The usual spelling of a time zone's name, which callers may send in any letter case.
 *
 * @throws InvalidParameter if the text is not a time zone
 */
export function knownZone(parameter: string, value: string): string {
  const zone = zoneNamed(value)
  if (zone === undefined) throw new InvalidParameter(parameter, 'it is not an IANA time zone, such as Europe/Berlin')
  return zone
}

export function upperCased(_parameter: string, value: string): string {
  return value.toUpperCase()
}

export function lowerCased(_parameter: string, value: string): string {
  return value.toLowerCase()
}
