import type { FastifyInstance } from 'fastify'

type Schema = Record<string, unknown>

/**
 * For bodies that may have unknown members. Forms and some clients send such members, and ignoring
 * them is harmless because no member of these bodies is a restriction.
 */
export const OPEN_BODY = { additionalProperties: true }

/**
 * Refuses unknown members of JSON bodies. If a misspelt restriction were ignored, the result would
 * allow more than its sender wanted. The rule is part of the schema, so the OpenAPI document shows
 * it. An object that sets `additionalProperties` itself keeps its value. Call it before a route is
 * added.
 */
export function closeBodies(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.schema?.body) route.schema = { ...route.schema, body: closed(route.schema.body) }
  })
}

function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const { properties, items, anyOf, ...others } = schema as Schema
  const inner = properties === undefined ? undefined : Object.entries(properties as Schema)
  return {
    ...(inner && others.patternProperties === undefined ? { additionalProperties: false } : {}),
    ...others,
    ...(inner ? { properties: Object.fromEntries(inner.map(([name, member]) => [name, closed(member)])) } : {}),
    ...(items === undefined ? {} : { items: closed(items) }),
    ...(anyOf === undefined ? {} : { anyOf: closed(anyOf) }),
  }
}
