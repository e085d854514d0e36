import Type, { type Static } from 'typebox'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { nullable } from '../catalog/json.ts'
import type { ProviderKey } from '../db/schema.ts'
import type { ErrorCode } from '../errors.ts'

const ValidationFailure = Type.Object(
  {
    code: Type.String({
      description: 'Error code that a call would have got; KEY_NOT_CHECKABLE: the API answers the same with any key',
    }),
    message: Type.String({ description: 'What happened, and what you can do' }),
    at: Type.String({ format: 'date-time', description: 'Time of the attempt' }),
    nextAt: nullable(
      Type.String({
        format: 'date-time',
        description: 'Time from which the gateway tries again by itself; null: it does not try again',
      }),
    ),
  },
  {
    description:
      'Why the last validation had no result, for example because the API did not answer; the status of the key stays as it was. Null: the last validation had a result, or no validation has ended',
  },
)

export const ProviderKeyAnswer = Type.Object(
  {
    apiSlug: Type.String({ description: 'Slug of the API' }),
    displayName: Type.String({ description: 'Name of the API' }),
    accessMode: Type.Enum(['platform_managed', 'byok_available', 'byok_required'], {
      description:
        'Whose key the gateway uses for your calls: always the operator’s, yours if you save one, or always yours',
    }),
    status: Type.Enum(['valid', 'invalid', 'unvalidated'], {
      description: 'Result of the last validation; unvalidated: the API has not accepted or refused the key yet',
    }),
    maskedKey: nullable(Type.String({ description: 'The last four characters, the rest masked' })),
    savedAt: Type.String({ format: 'date-time', description: 'When the key was stored' }),
    lastValidatedAt: nullable(
      Type.String({ format: 'date-time', description: 'When the API last accepted or refused the key' }),
    ),
    validationFailure: nullable(ValidationFailure),
  },
  { title: 'ProviderKey' },
)

/** A record as its owner sees it; undefined for an API that is no longer in the catalog. */
export function providerKeyAnswer(catalog: Catalog, key: ProviderKey): Static<typeof ProviderKeyAnswer> | undefined {
  const api = catalog.get(key.slug)
  if (!api) return undefined
  const { upstream } = api
  return {
    apiSlug: key.slug,
    displayName: upstream.displayName,
    accessMode: upstream.credential?.accessMode ?? 'platform_managed',
    status: key.status,
    maskedKey: key.masked,
    savedAt: key.saved_at.toISOString(),
    lastValidatedAt: key.last_validated_at?.toISOString() ?? null,
    validationFailure: failureAnswer(api, key),
  }
}

function failureAnswer(api: Api, key: ProviderKey): Static<typeof ValidationFailure> | null {
  const name = api.upstream.displayName
  const { failure_code: code, failed_at: at, next_validation_at: nextAt } = key
  if (code === null || at === null) return null
  // A worker of an earlier version does not delete the failure when it notes a verdict or replaces
  // the key.
  // @until 0.4.0
  if (key.saved_at > at || (key.last_validated_at !== null && key.last_validated_at >= at)) return null
  if (code === 'KEY_NOT_CHECKABLE') return { code, message: notCheckable(name), at: at.toISOString(), nextAt: null }
  const { cause, until } = WORDS[code]?.(name) ?? unanswered(name)
  const byItself =
    api.pausedMode === 'hold'
      ? `The gateway checks it when the operator resumes ${name}.`
      : `The gateway checks it again ${soonOrAt(at, nextAt)}.`
  const next = nextAt === null ? `Validate it again when ${until}.` : byItself
  return {
    code,
    message: `${cause}, so the key could not be checked. The key is saved. ${next}`,
    at: at.toISOString(),
    nextAt: nextAt?.toISOString() ?? null,
  }
}

const MINUTE_MS = 60_000

/** A cap with long windows may have no room for hours. */
function soonOrAt(failedAt: Date, nextAt: Date | null): string {
  if (nextAt === null || nextAt.getTime() - failedAt.getTime() <= MINUTE_MS) return 'within a minute'
  return `at ${nextAt.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

const notCheckable = (name: string): string =>
  `${name} gives the same answer to an invented key as to yours, so the gateway cannot tell whether your key is valid. The key is saved and sent with your calls, which share the small limit of all unverified keys. Delete it to use the gateway's own access.`

interface FailureWords {
  cause: string
  /** The event after which a check can succeed, in words. */
  until: string
}

const unanswered = (name: string): FailureWords => ({
  cause: `${name} did not give a usable answer`,
  until: `${name} answers`,
})

const WORDS: Partial<Record<ErrorCode, (name: string) => FailureWords>> = {
  UPSTREAM_RATE_LIMITED: (name) => ({
    cause: `${name} accepts no more requests at the moment`,
    until: 'it accepts requests again',
  }),
  UPSTREAM_CAP_EXHAUSTED: (name) => ({
    cause: `The gateway’s own limit of requests to ${name} is used up for now`,
    until: 'the limit has room again',
  }),
  API_PAUSED: (name) => ({ cause: `The operator paused ${name}`, until: 'it is resumed' }),
  API_NOT_ENABLED: (name) => ({ cause: `The operator switched ${name} off`, until: 'it is on again' }),
}
