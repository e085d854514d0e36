import { exampleOf } from './answers.ts'
import { madeValue } from './made-value.ts'
import { BODY, type MappedParameter } from './parameters.ts'
import type { Located, OpenApiDocument } from './references.ts'
import type { MappedBody } from './request.ts'
import type { Schema } from './schemas.ts'

/** A call that works: the document's examples for what a call must give. */
export function exampleParameters(
  document: OpenApiDocument,
  {
    pathItem,
    operation,
    parameters,
    body,
  }: { pathItem: Located; operation: Located; parameters: MappedParameter[]; body: MappedBody | undefined },
): Record<string, unknown> {
  const located = [pathItem, operation].flatMap((holder) => document.items(document.member(holder, 'parameters')))
  const values: Record<string, unknown> = {}
  for (const { name, in: place, required, schema } of parameters) {
    const declared = located.findLast(({ value }) => Object(value).name === name && Object(value).in === place)
    const example = declared && exampleOf(document, declared)?.value
    const isPlain = example !== null && (typeof example !== 'object' || Array.isArray(example))
    if (example !== undefined && isPlain && (required || schema.default === undefined))
      values[name] = inTypeOf(schema, example)
    else if (required) values[name] = madeValue(schema)
  }
  if (body) {
    const example = exampleOf(document, body.media)
    values[BODY] = example ? example.value : madeValue(body.schema)
  }
  return values
}

/** Examples are often written as text. */
function inTypeOf({ type, items }: Schema, example: unknown): unknown {
  if (type === 'array') return [example].flat().map((item) => inTypeOf((items ?? {}) as Schema, item))
  if (type === 'string') return String(example)
  if ((type === 'number' || type === 'integer') && typeof example === 'string') return Number(example)
  if (type === 'boolean' && typeof example === 'string') return example === 'true'
  return example
}
