import { Check } from 'typebox/schema'
import { statedExample } from './example-values.ts'
import { madeValue } from './made-value.ts'
import { BODY, type MappedParameter } from './parameters.ts'
import type { OpenApiDocument } from './references.ts'
import type { MappedBody } from './request.ts'

/**
 * Parameters of an example call: the examples of the document, and made values for required
 * parameters without an example.
 */
export function exampleParameters(
  document: OpenApiDocument,
  { parameters, body }: { parameters: MappedParameter[]; body: MappedBody | undefined },
): Record<string, unknown> {
  const given = parameters.filter(
    ({ required, schema, example }) => required || (example.isStated && schema.default === undefined),
  )
  const values: Record<string, unknown> = Object.fromEntries(given.map(({ name, example }) => [name, example.value]))
  if (!body) return values
  const stated = statedExample(document, body.media)
  if (stated && Check(body.schema, stated.value)) return { ...values, [BODY]: stated.value }
  if (stated) {
    document.findings.leaveOut(body.media.path, 'The example of the body is left out: it does not match its schema.')
  }
  return { ...values, [BODY]: madeValue(body.schema) }
}
