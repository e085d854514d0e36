import Type, { type Static, type TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { isObject } from '../json.ts'
import type { Located } from './references.ts'
import type { Findings } from './report.ts'

const closed = <T extends Type.TProperties>(members: T) => Type.Object(members, { additionalProperties: false })
const optional = Type.Optional
const words = (maxLength: number) => Type.String({ minLength: 1, maxLength })
const HeaderName = Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$" })

/**
 * `x-gateway` at the root of a document: what the document cannot say of an API as the gateway
 * offers it.
 */
const RootSettings = closed({
  caps: closed({
    concurrency: Type.Integer({ minimum: 1, maximum: 99_999 }),
    rates: Type.Array(
      closed({
        max: Type.Integer({ minimum: 1, maximum: 9_999_999 }),
        seconds: Type.Number({ minimum: 0.001, maximum: 9_999_999 }),
      }),
      { maxItems: 10 },
    ),
  }),
  baseUrl: optional(words(500)),
  probe: optional(
    closed({ operationId: words(200), everySeconds: optional(Type.Integer({ minimum: 5, maximum: 86_400 })) }),
  ),
  tier: optional(Type.Enum(['developer', 'pro', 'business', 'enterprise'])),
  category: optional(words(60)),
  tags: optional(Type.Array(words(60), { maxItems: 20 })),
  terms: optional(
    closed({
      summary: optional(words(500)),
      url: optional(words(500)),
      licence: optional(words(500)),
      attribution: optional(words(200)),
    }),
  ),
  credential: optional(
    closed({
      scheme: optional(words(100)),
      accessMode: optional(Type.Enum(['platform_managed', 'byok_available', 'byok_required'])),
    }),
  ),
  attemptTimeoutMs: optional(Type.Integer({ minimum: 100, maximum: 300_000 })),
  requestBytesMax: optional(Type.Integer({ minimum: 1, maximum: 65_536 })),
  bodyBytesMax: optional(Type.Integer({ minimum: 1, maximum: 16_777_216 })),
  rateHeaders: optional(
    closed({
      remaining: HeaderName,
      reset: HeaderName,
      resetIs: Type.Enum(['epoch-seconds', 'seconds']),
      appliesWhen: optional(closed({ header: HeaderName, value: words(100) })),
    }),
  ),
})
export type RootSettings = Static<typeof RootSettings>

/** `x-gateway` at an operation. */
const OperationSettings = closed({
  name: optional(Type.String({ pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', maxLength: 60 })),
  skip: optional(Type.Boolean()),
  effect: optional(Type.Enum(['read', 'repeatable', 'once'])),
  idempotencyHeader: optional(HeaderName),
  cacheSeconds: optional(Type.Integer({ minimum: 0, maximum: 2_592_000 })),
  notFoundSeconds: optional(Type.Integer({ minimum: 0, maximum: 2_592_000 })),
  perCaller: optional(Type.Boolean()),
  strict: optional(Type.Boolean()),
  errorMessage: optional(Type.String({ pattern: '^(/.*)?$', maxLength: 200 })),
  destructive: optional(Type.Boolean()),
})
export type OperationSettings = Static<typeof OperationSettings>

const checks = { root: Compile(RootSettings), operation: Compile(OperationSettings) }

/** @returns undefined after errors are reported */
export function readRootSettings(settings: Located, findings: Findings): RootSettings | undefined {
  if (settings.value === undefined) {
    findings.error(
      [],
      'The document has no x-gateway, whose caps are required: write x-gateway: { caps: { concurrency: 4, rates: [{ max: 5, seconds: 1 }] } } into the document or an overlay.',
    )
    return undefined
  }
  return fits(RootSettings, settings, findings) ? (settings.value as RootSettings) : undefined
}

/** @returns undefined after errors are reported */
export function readOperationSettings(settings: Located, findings: Findings): OperationSettings | undefined {
  if (settings.value === undefined) return {}
  return fits(OperationSettings, settings, findings) ? (settings.value as OperationSettings) : undefined
}

function fits(
  schema: typeof RootSettings | typeof OperationSettings,
  { value, path }: Located,
  findings: Findings,
): boolean {
  const check = schema === RootSettings ? checks.root : checks.operation
  if (check.Check(value)) return true
  const [, errors] = check.Errors(value)
  for (const { keyword, instancePath, message, params } of errors) {
    // Of an enumeration, typebox reports each value that does not match beside the whole.
    if (keyword === 'const' || keyword === 'anyOf') continue
    const inner = instancePath.split('/').slice(1)
    const { additionalProperties = [], requiredProperties = [], allowedValues } = Object(params)
    if (keyword === 'additionalProperties') {
      for (const name of additionalProperties) {
        findings.error(
          [...path, ...inner, name],
          `x-gateway has no member ${name} here; it takes ${membersOf(schema, inner).join(', ')}.`,
        )
      }
    } else if (keyword === 'required') {
      findings.error([...path, ...inner], `x-gateway lacks ${requiredProperties.join(', ')}.`)
    } else if (keyword === 'enum') {
      findings.error([...path, ...inner], `The value must be one of ${[allowedValues].flat().join(', ')}.`)
    } else {
      findings.error([...path, ...inner], `The value ${message}.`)
    }
  }
  return false
}

/** Names of the members that an object of the settings may have. */
function membersOf(schema: TSchema, path: string[]): string[] {
  let inner: unknown = schema
  for (const name of path) {
    const { properties, items } = Object(inner)
    inner = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : items
  }
  return Object.keys(Object(Object(inner).properties))
}
