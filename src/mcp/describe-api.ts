import Type, { type Static } from 'typebox'
import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import { type Api, isCallable } from '../catalog/catalog.ts'
import { cacheWords, capWords, effectWords } from '../catalog/limit-words.ts'
import type { Tier } from '../catalog/upstream.ts'
import { typescriptType } from '../clients/typescript-types.ts'
import type { ProviderKeyState } from '../db/provider-keys.ts'
import type { HealthView } from '../health/health-view.ts'
import { isTierAtLeast } from '../limits/plans.ts'
import { toDocumentSchema } from '../openapi/schemas.ts'
import { CONDITIONS, type ConditionWord, conditionOf, sourceStateWord } from '../portal/condition.ts'
import { objectSchema } from './api-tools.ts'

/** The caller, and a reader of the health of APIs. */
export interface Observer {
  health: { of: (slug: string) => HealthView }
  /** The caller's tier. */
  tier: Tier
  /** Slugs of the APIs that the user allows the application to call; null: all. */
  allowedApis: readonly string[] | null
  /** The provider keys that the caller's calls use, by slug; for a key of a team, the team's. */
  providerKeys: ReadonlyMap<string, Pick<ProviderKeyState, 'status'>>
}

/** The state of an API in the results of search_apis. */
export const BriefApiState = {
  status: Type.Enum([...CONDITIONS, 'Needs your key'], {
    description:
      'State of the source now. Limited: the source refuses calls of the gateway for a while. Not checked: the state is not known at the moment. Needs your key: calls with a live key are refused until the account has a valid key of its own for this source',
  }),
  tier_required: Type.String(),
  within_your_plan: Type.Boolean({ description: 'false: calls with a live or test key are refused with 402' }),
}

/** The state of an API in the results of describe_api. */
const ApiState = {
  ...BriefApiState,
  meanwhile: Type.Optional(Type.String({ description: 'What calls get while the status is not Healthy' })),
}

export function briefApiStateOf(api: Api, observer: Observer): Static<Type.TObject<typeof BriefApiState>> {
  return {
    status: statusOf(api, observer),
    tier_required: api.tierRequired,
    within_your_plan: isTierAtLeast(observer.tier, api.tierRequired),
  }
}

export function apiStateOf(api: Api, observer: Observer): Static<Type.TObject<typeof ApiState>> {
  const brief = briefApiStateOf(api, observer)
  const { status } = brief
  const { word, effect } = conditionOf(api, observer.health.of(api.slug))
  // If the account has its own key, it can use an API that is not enabled for others.
  const isForCaller = status === word || status === 'Needs your key'
  return { ...brief, ...(isForCaller && effect !== '' ? { meanwhile: effect } : {}) }
}

function statusOf(api: Api, { health, providerKeys }: Observer): ConditionWord | 'Needs your key' {
  const { slug, needsCallerKey, pausedMode } = api
  if (!isCallable(api)) return 'Not enabled'
  if (pausedMode) return 'Paused'
  // A key that the source refused does not help.
  const isKeyMissing = (providerKeys.get(slug)?.status ?? 'invalid') === 'invalid'
  return needsCallerKey && isKeyMissing ? 'Needs your key' : sourceStateWord(health.of(slug))
}

export const DescribeOutput = Type.Object({
  api: Type.String(),
  name: Type.String(),
  description: Type.String(),
  ...ApiState,
  source_limits: Type.String({ description: 'How much the source allows all callers together; further calls wait' }),
  terms: Type.String({
    description: 'Terms of the source, with the attribution that you must show, and the addresses of terms and licence',
  }),
  docs: Type.String(),
  /** Corresponds to `Quote`, whose full schema would be a tenth of the list of tools. */
  now: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'What would happen to a call now: waitMs, limitedBy, minuteLeft, monthLeft, inFlightLeft, stored',
    }),
  ),
  endpoints: Type.Array(
    Type.Object({
      path: Type.String(),
      description: Type.String(),
      parameters: Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema of the parameters' }),
      data: Type.String({ description: 'The data as a TypeScript type' }),
      cache: Type.String(),
      example: Type.Object({
        parameters: Type.Record(Type.String(), Type.Unknown()),
        data: Type.Optional(
          Type.Record(Type.String(), Type.Unknown(), { description: 'Recorded data, if it is short enough' }),
        ),
      }),
    }),
  ),
})
type Description = Static<typeof DescribeOutput>

/**
 * Longest description, characters. It goes into a model's context twice: as text and as structured
 * content.
 */
const DESCRIPTION_LENGTH_MAX = 3_500

/** Levels of detail for an endpoint's data, the fullest first. */
const FORMS = [
  { hasComments: true, hasExample: true, depthMax: 9 },
  { hasComments: true, hasExample: false, depthMax: 9 },
  { hasComments: false, hasExample: false, depthMax: 9 },
  { hasComments: false, hasExample: false, depthMax: 3 },
  { hasComments: false, hasExample: false, depthMax: 1 },
]
type Form = (typeof FORMS)[number]
const SHORTEST = FORMS.at(-1)

/** Describes an API or one of its endpoints, with as much detail as the length limit allows. */
export function describeApi(
  api: Api,
  observer: Observer,
  { baseUrl, endpoint }: { baseUrl: string; endpoint?: ApiEndpoint | undefined },
): Description {
  const { slug, upstream, endpoints } = api
  const { summary, url, licence, attribution } = upstream.terms
  const about = {
    api: slug,
    name: upstream.displayName,
    description: upstream.description,
    ...apiStateOf(api, observer),
    source_limits: capWords(api.caps),
    terms: [summary, attribution && `${attribution}.`, licence, url].filter(Boolean).join(' '),
    docs: `${baseUrl}/docs/apis/${slug}.md`,
  }
  const described = endpoint ? [endpoint] : [...endpoints.values()]
  const charactersMax = DESCRIPTION_LENGTH_MAX - JSON.stringify(about).length
  for (const form of FORMS) {
    const parts = described.map((each) => rendered(each, form))
    if (form !== SHORTEST && sum(parts.map(({ length }) => length)) > charactersMax) continue
    return { ...about, endpoints: parts.map(({ description }) => description) }
  }
  return { ...about, endpoints: [] }
}

interface Rendered {
  description: Description['endpoints'][number]
  length: number
}

/**
 * Descriptions of endpoints by level of detail. They are the same for all callers, and come from
 * files that do not change while a process runs.
 */
const renderedBy = new Map(FORMS.map((form) => [form, new WeakMap<ApiEndpoint, Rendered>()]))

function rendered(endpoint: ApiEndpoint, form: Form): Rendered {
  const ofForm = renderedBy.get(form)
  const known = ofForm?.get(endpoint)
  if (known) return known
  const description = describeEndpoint(endpoint, form)
  const made = { description, length: JSON.stringify(description).length + 1 }
  ofForm?.set(endpoint, made)
  return made
}

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0)

function describeEndpoint(apiEndpoint: ApiEndpoint, form: Form): Description['endpoints'][number] {
  const { path, declaration: endpoint } = apiEndpoint
  const { parameters, data } = endpoint.example as {
    parameters: Record<string, unknown>
    data: Record<string, unknown>
  }
  const schema = toDocumentSchema(endpoint.data, new Map())
  return {
    path,
    description: [endpoint.description, effectWords(apiEndpoint)].filter(Boolean).join(' '),
    parameters: objectSchema(endpoint.parameters),
    data: onOneLine(typescriptType(schema, form)),
    cache: cacheWords(apiEndpoint),
    example: { parameters, ...(form.hasExample ? { data } : {}) },
  }
}

/** Puts a type on one line: members then end with a semicolon. */
function onOneLine(type: string): string {
  return type
    .replace(/(\{|\*\/)\n\s*/g, '$1 ')
    .replace(/\n\s*\}/g, ' }')
    .replace(/\n\s*/g, '; ')
}
