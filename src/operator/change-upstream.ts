import Type, { type Static } from 'typebox'
import { holdsApiKey, OWN_KEY_REFUSED } from '../accounts/api-key.ts'
import { operatorKeyRecord } from '../accounts/sealed-records.ts'
import { seal } from '../accounts/secret-box.ts'
import type { Api } from '../catalog/catalog.ts'
import { nullable } from '../catalog/json.ts'
import type { Secret } from '../config.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { UpstreamSettingsRow } from '../db/schema.ts'
import { lockUpstreamSettings, type NewUpstreamSettings, saveUpstreamSettings } from '../db/upstream-settings.ts'
import { GatewayError } from '../errors.ts'
import { TierName } from './change-user.ts'

/**
 * The settings of an upstream that an operator may change. Null resets a member to the value of the
 * file and the environment.
 */
export const UpstreamChange = Type.Object(
  {
    enabled: Type.Optional(nullable(Type.Boolean())),
    tierRequired: Type.Optional(nullable(TierName)),
    caps: Type.Optional(
      nullable(
        Type.Object(
          {
            concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
            rates: Type.Optional(
              Type.Array(
                Type.Object(
                  {
                    max: Type.Integer({ minimum: 1, maximum: 10_000_000 }),
                    seconds: Type.Number({ minimum: 0.001, maximum: 31_536_000 }),
                  },
                  { additionalProperties: false },
                ),
                { maxItems: 8 },
              ),
            ),
          },
          { additionalProperties: false },
        ),
      ),
    ),
    key: Type.Optional(
      nullable(
        Type.String({
          minLength: 1,
          maxLength: 512,
          pattern: '^[\\x21-\\x7e]+$',
          title: 'printable ASCII without spaces',
          description: 'The key for the upstream. The gateway never shows it',
        }),
      ),
    ),
  },
  { minProperties: 1 },
)

/**
 * Changes an upstream's settings, all or none, and records the values before and after in the audit
 * log.
 *
 * @returns `isOtherKey`: whether a key was stored or an existing key was removed
 * @throws GatewayError VALIDATION_ERROR for settings that contradict each other
 */
export function changeUpstream(
  { db, secrets }: { db: Db; secrets: Secret[] },
  api: Api,
  { actor, ...change }: Static<typeof UpstreamChange> & { actor: string },
): Promise<{ isOtherKey: boolean }> {
  const { slug } = api
  return db.transaction().execute(async (transaction) => {
    const row = await lockUpstreamSettings(transaction, slug)
    const settings = mergeChange(row, change, { slug, secrets })
    checkTogether(api, change, settings)
    await saveUpstreamSettings(transaction, slug, settings)
    const before = auditedSettings(mergeChange(row, {}, { slug, secrets }))
    await insertAuditRecord(transaction, {
      actor,
      action: 'upstream.update',
      subject: slug,
      before,
      after: { ...auditedSettings(settings), ...(change.key && before.key !== null ? { key: 'replaced' } : {}) },
    })
    return { isOtherKey: Boolean(change.key) || (change.key === null && Boolean(row?.key_sealed)) }
  })
}

/** The settings after a change. */
export function mergeChange(
  row: UpstreamSettingsRow | undefined,
  change: Static<typeof UpstreamChange>,
  { slug, secrets }: { slug: string; secrets: Secret[] },
): NewUpstreamSettings {
  const kept = row?.key_sealed && row.key_secret_id ? { secretId: row.key_secret_id, bytes: row.key_sealed } : null
  return {
    enabled: change.enabled === undefined ? (row?.enabled ?? null) : change.enabled,
    tierRequired: change.tierRequired === undefined ? (row?.tier_required ?? null) : change.tierRequired,
    caps: change.caps === undefined ? (row?.caps ?? null) : change.caps && { ...row?.caps, ...change.caps },
    key:
      change.key === undefined ? kept : change.key === null ? null : seal(secrets, operatorKeyRecord(slug), change.key),
  }
}

/** @throws GatewayError VALIDATION_ERROR for settings that contradict each other */
export function checkTogether(
  { slug, upstream, configured }: Api,
  change: Static<typeof UpstreamChange>,
  after: NewUpstreamSettings,
): void {
  const { credential } = upstream
  if (change.key && !credential) throw invalid('key', `The upstream ${slug} does not use a key.`)
  if (change.key && holdsApiKey(change.key)) throw invalid('key', OWN_KEY_REFUSED)
  const hasKey = after.key !== null || configured.key !== undefined
  if (after.enabled === true && credential?.required && !hasKey && credential.accessMode === 'platform_managed') {
    throw invalid('enabled', `The upstream ${slug} needs a key before it can be enabled.`)
  }
}

function invalid(param: string, message: string): GatewayError {
  return new GatewayError('VALIDATION_ERROR', { message, tokens: { param } })
}

/** Settings in the form of the audit log. It records whether there is a key, never the key. */
export function auditedSettings({ enabled, tierRequired, caps, key }: NewUpstreamSettings): Record<string, unknown> {
  return { enabled, tierRequired, caps, key: key === null ? null : 'set' }
}
