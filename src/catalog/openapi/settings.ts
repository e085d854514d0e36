import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/schema'
import { reportMisfits } from './misfits.ts'
import type { Located } from './references.ts'
import type { Findings } from './report.ts'

const closed = <T extends Type.TProperties>(members: T) => Type.Object(members, { additionalProperties: false })
const optional = Type.Optional
const words = (maxLength: number) => Type.String({ minLength: 1, maxLength })
const HeaderName = Type.String({
  pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$",
  title: 'the name of a header',
})
const WebAddress = Type.String({ pattern: '^https?://', maxLength: 500, title: 'an http: or https: address' })

/** `x-gateway` at the root of a document: settings of the API that OpenAPI cannot express. */
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
      url: optional(WebAddress),
      licence: optional(WebAddress),
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
  name: optional(
    Type.String({
      pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
      maxLength: 60,
      title: 'lower-case words joined by hyphens, such as list-orders',
    }),
  ),
  skip: optional(Type.Boolean()),
  effect: optional(Type.Enum(['read', 'repeatable', 'once'])),
  idempotencyHeader: optional(HeaderName),
  cacheSeconds: optional(Type.Integer({ minimum: 0, maximum: 2_592_000 })),
  notFoundSeconds: optional(Type.Integer({ minimum: 0, maximum: 2_592_000 })),
  perCaller: optional(Type.Boolean()),
  strict: optional(Type.Boolean()),
  errorMessage: optional(Type.String({ pattern: '^(/.*)?$', maxLength: 200, title: 'a JSON pointer such as /detail' })),
  destructive: optional(Type.Boolean()),
})
export type OperationSettings = Static<typeof OperationSettings>

const checks = { root: Compile(RootSettings), operation: Compile(OperationSettings) }

/** @returns undefined if there were errors, which are reported */
export function readRootSettings(settings: Located, findings: Findings): RootSettings | undefined {
  if (settings.value === undefined) {
    findings.error(
      [],
      'The document has no x-gateway, and the member caps of x-gateway is required. Write x-gateway: { caps: { concurrency: 4, rates: [{ max: 5, seconds: 1 }] } } into the document or an overlay.',
    )
    return undefined
  }
  return fits(RootSettings, settings, findings) ? (settings.value as RootSettings) : undefined
}

/** @returns undefined if there were errors, which are reported */
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
  reportMisfits(check.Errors(value)[1], { schema, path, name: 'x-gateway' }, findings)
  return false
}
