import type { TSchema } from 'typebox'
import { isObject } from '../json.ts'
import { nearestName } from '../nearest-name.ts'
import type { Path } from './places.ts'
import type { Findings } from './report.ts'

/** A report of the validator about one place. */
export interface Misfit {
  keyword: string
  instancePath: string
  message: string
  params: object
}

/**
 * Keywords in order of how much their report explains. Of several reports about one place the first
 * is shown.
 */
const TELLING = ['additionalProperties', 'required', 'enum', 'pattern', 'minimum', 'maximum', 'type']

/** Keywords whose report only repeats another report about the whole value or about its options. */
const FOLLOWS = new Set(['boolean', 'const', 'anyOf'])

const TYPE_WORDS: Record<string, string> = {
  object: 'an object',
  array: 'a list',
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  null: 'null',
}

/**
 * Reports every place of a value that does not fit one of our schemas, one sentence for each place.
 *
 * @param path where the document has the value
 * @param name the name of the object in the sentences
 */
export function reportMisfits(
  misfits: readonly Misfit[],
  { schema, path, name }: { schema: TSchema; path: Path; name: string },
  findings: Findings,
): void {
  const places = Map.groupBy(
    misfits.filter(({ keyword }) => !FOLLOWS.has(keyword)),
    ({ instancePath }) => instancePath,
  )
  for (const [instancePath, reports] of places) {
    const inner = instancePath
      .split('/')
      .slice(1)
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    const at = [...path, ...inner]
    const [telling] = TELLING.flatMap((keyword) => reports.filter((report) => report.keyword === keyword))
    const { keyword, params, message } = telling ?? reports[0] ?? { keyword: '', params: {}, message: 'is not valid' }
    const { additionalProperties = [], requiredProperties = [], allowedValues, limit } = Object(params)
    const expected = schemaAt(schema, inner)
    if (keyword === 'additionalProperties') {
      const known = Object.keys(Object(expected.properties))
      for (const unknown of additionalProperties) {
        const near = nearestName(unknown, known)
        const instead = near === undefined ? `its members are ${known.join(', ')}` : `did you mean ${near}?`
        findings.error([...at, unknown], `${name} has no member ${unknown} here; ${instead.replace(/[^?]$/, '$&.')}`)
      }
    } else if (keyword === 'required') findings.error(at, `${name} lacks ${requiredProperties.join(', ')}.`)
    else if (keyword === 'enum') findings.error(at, `The value must be one of ${[allowedValues].flat().join(', ')}.`)
    else if (keyword === 'pattern') findings.error(at, `The value must be ${expected.title ?? 'in another form'}.`)
    else if (keyword === 'minimum') findings.error(at, `The value must be at least ${limit}.`)
    else if (keyword === 'maximum') findings.error(at, `The value must be at most ${limit}.`)
    else if (keyword === 'type') {
      const types = reports
        .filter((report) => report.keyword === 'type')
        .map(({ params: { type } }: Misfit & { params: { type?: string } }) => type)
      findings.error(at, `The value must be ${types.map((type) => TYPE_WORDS[String(type)]).join(' or ')}.`)
    } else findings.error(at, `The value ${message}.`)
  }
}

/** The schema at a path. If a schema is a choice with null, the other option. */
function schemaAt(schema: TSchema, path: readonly string[]): Record<string, unknown> {
  let inner: unknown = schema
  for (const name of path) {
    const { properties, patternProperties, items } = option(inner)
    const [ofAll] = Object.values(Object(patternProperties))
    inner = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : (ofAll ?? items)
  }
  return option(inner)
}

function option(schema: unknown): Record<string, unknown> {
  const { anyOf } = Object(schema)
  return Object(Array.isArray(anyOf) ? anyOf.find(({ type }) => type !== 'null') : schema)
}
