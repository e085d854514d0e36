/**
 * Readers of JSON of unknown shape: each gives the value when it is what it should be, and null or
 * empty if not.
 */

import { decodeHTML } from 'entities'
import Type, { type TSchema } from 'typebox'

/** A schema of `type` or null. */
export const nullable = <T extends TSchema>(type: T) => Type.Union([type, Type.Null()])

/** The members of a JSON object; none when it is anything else. */
export function members(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}

/** Whether the value is a JSON object (not null, not an array). */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The items of a JSON array; none when it is anything else. */
export function items(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** The objects of a JSON array, without what is none. */
export function objects(value: unknown): Record<string, unknown>[] {
  return items(value).filter(isObject)
}

/**
 * The objects of a JSON array. Undefined if the value is no array, or if it has items and none of
 * them is an object: then the upstream's form has changed, which does not mean that there is
 * nothing.
 */
export function listedObjects(value: unknown): Record<string, unknown>[] | undefined {
  if (!Array.isArray(value)) return undefined
  const found = objects(value)
  return found.length === 0 && value.length > 0 ? undefined : found
}

export function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** A text that says something: null if it is empty or blank. */
export function filledText(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null
}

/** A finite JSON number. */
export function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** A number, also when the upstream writes it as text (`"12.5"`). */
export function numeric(value: unknown): number | null {
  if (typeof value === 'string')
    return /^\s*[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?\s*$/i.test(value) ? number(Number(value)) : null
  return number(value)
}

export function integer(value: unknown): number | null {
  return Number.isSafeInteger(value) ? (value as number) : null
}

export function flag(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null
}

/** The strings of a JSON array, without what is none. */
export function texts(value: unknown): string[] {
  return items(value).filter((item): item is string => typeof item === 'string')
}

/** A text with HTML character references (`&#039;`, `&eacute;`) decoded. */
export function htmlDecoded(value: unknown): string | null {
  return typeof value === 'string' ? decodeHTML(value) : null
}
