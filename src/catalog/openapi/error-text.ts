import { isObject } from '../json.ts'
import type { OpenApiDocument } from './references.ts'

/**
 * Where APIs commonly put the text of an error, the most specific place first. `detail` is from RFC
 * 9457.
 */
const PLACES = [['detail'], ['message'], ['error', 'message'], ['error_description'], ['error']] as const

type Names = readonly string[]

/**
 * The places of an error's text that the schemas of its bodies declare as texts. A schema with a
 * broken reference is ignored, because no call depends on it.
 *
 * @param schemas the schemas of the bodies of refusals
 */
export function declaredErrorTexts(document: OpenApiDocument, schemas: unknown[]): Names[] {
  return PLACES.filter((names) => schemas.some((schema) => isText(document, propertyAt(document, schema, names))))
}

function propertyAt(document: OpenApiDocument, schema: unknown, [name, ...rest]: Names): unknown {
  if (name === undefined) return schema
  const { properties, allOf } = Object(document.peek(schema))
  if (isObject(properties) && Object.hasOwn(properties, name)) return propertyAt(document, properties[name], rest)
  const parts: unknown[] = Array.isArray(allOf) ? allOf : []
  for (const part of parts) {
    const { properties: inner } = Object(document.peek(part))
    if (isObject(inner) && Object.hasOwn(inner, name)) return propertyAt(document, inner[name], rest)
  }
  return undefined
}

function isText(document: OpenApiDocument, schema: unknown): boolean {
  const { type } = Object(document.peek(schema))
  return [type].flat().includes('string')
}
