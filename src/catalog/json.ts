/**
 * Readers of JSON of unknown shape. Each returns the value if it has the expected type, otherwise
 * null or an empty value.
 */

import { decodeHTML } from 'entities'
import Type, { type TSchema } from 'typebox'
import { isCalendarDate } from './calendar.ts'

/** A schema of `type` or null. */
export const nullable = <T extends TSchema>(type: T) => Type.Union([type, Type.Null()])

/** The members of a JSON object; none if the value is anything else. */
export function members(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}

/** Whether the value is a JSON object (not null, not an array). */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The items of a JSON array; none if the value is anything else. */
export function items(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** The objects of a JSON array; other items are left out. */
export function objects(value: unknown): Record<string, unknown>[] {
  return items(value).filter(isObject)
}

/**
 * The objects of a JSON array. Undefined if the value is not an array, or if it has items but no
 * objects, because the upstream's format has then changed.
 */
export function listedObjects(value: unknown): Record<string, unknown>[] | undefined {
  if (!Array.isArray(value)) return undefined
  const found = objects(value)
  return found.length === 0 && value.length > 0 ? undefined : found
}

/**
 * What a function makes of the objects of a JSON array. Any other value stays as it is, so that the
 * field of the list counts as missing and not as empty.
 */
export function mapObjects(value: unknown, map: (item: Record<string, unknown>) => unknown): unknown {
  return listedObjects(value)?.flatMap(map) ?? value
}

export function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** A text; null if it is empty or blank. */
export function filledText(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null
}

/**
 * The whole address of a web page or file. A link without protocol, or relative to a page that
 * callers do not know, would lead nowhere. Null if the value is no text, or if the address of the
 * page is needed and not given.
 */
export function webAddress(value: unknown, pageUrl?: unknown): string | null {
  if (typeof value !== 'string' || /^https?:/i.test(value)) return text(value)
  if (value.startsWith('//')) return `https:${value}`
  const url = value !== '' && typeof pageUrl === 'string' ? URL.parse(value, pageUrl) : null
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : null
}

/** A finite JSON number. */
export function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** A number, or a text that holds a number (`"12.5"`). */
export function numeric(value: unknown): number | null {
  if (typeof value === 'string')
    return /^\s*[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?\s*$/i.test(value) ? number(Number(value)) : null
  return number(value)
}

/** A number that is not below zero, as prices and volumes are. */
export function amount(value: unknown): number | null {
  return (number(value) ?? -1) >= 0 ? (value as number) : null
}

/** A text YYYY-MM-DD that names a day of the calendar. */
export function calendarDate(value: unknown): string | null {
  return typeof value === 'string' && isCalendarDate(value) ? value : null
}

export function integer(value: unknown): number | null {
  return Number.isSafeInteger(value) ? (value as number) : null
}

export function flag(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null
}

/** The strings of a JSON array; other items are left out. */
export function texts(value: unknown): string[] {
  return items(value).filter((item): item is string => typeof item === 'string')
}

/** A text with HTML character references (`&#039;`, `&eacute;`) decoded. */
export function htmlDecoded(value: unknown): string | null {
  return typeof value === 'string' ? decodeHTML(value) : null
}
