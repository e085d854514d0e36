import { ConfigError, type EnvironmentReader } from './environment-reader.ts'

/** Calls that an account may make. */
export interface CallLimits {
  perMinute: number
  perMonth: number
  inFlight: number
}

export interface PlanLimits extends CallLimits {
  /** What stored results of asynchronous calls may take in Redis, millions of bytes. */
  resultMegabytes: number
}

export type PlanName = 'Free' | 'Pro' | 'Elite' | 'Elite (contract)'

const PLANS: Record<PlanName, PlanLimits> = {
  Free: { perMinute: 10, perMonth: 1_000, inFlight: 5, resultMegabytes: 16 },
  Pro: { perMinute: 100, perMonth: 100_000, inFlight: 25, resultMegabytes: 64 },
  Elite: { perMinute: 500, perMonth: 1_000_000, inFlight: 100, resultMegabytes: 256 },
  'Elite (contract)': { perMinute: 500, perMonth: 10_000_000, inFlight: 100, resultMegabytes: 256 },
}

/** The largest number that the header `RateLimit` can carry (RFC 9651, 3.3.1). */
const LIMIT_MAX = 999_999_999_999_999

/** @throws ConfigError that names the part of PLAN_LIMITS that cannot be used */
export function readPlans(read: EnvironmentReader): Record<PlanName, PlanLimits> {
  const plans = structuredClone(PLANS)
  const given = read.json('PLAN_LIMITS')
  if (given === undefined) return plans
  const override = asObject(given, 'PLAN_LIMITS')
  for (const [name, limits] of Object.entries(override)) {
    if (!Object.hasOwn(plans, name))
      throw new ConfigError(
        `PLAN_LIMITS names the plan ${name}, which does not exist; the plans are ${Object.keys(plans).join(', ')}`,
      )
    for (const [limit, value] of Object.entries(asObject(limits, `PLAN_LIMITS: ${name}`))) {
      if (!Object.hasOwn(plans.Free, limit)) {
        throw new ConfigError(
          `PLAN_LIMITS: ${name} has no limit ${limit}; its limits are ${Object.keys(plans.Free).join(', ')}`,
        )
      }
      if (!Number.isInteger(value) || Number(value) < 1 || Number(value) > LIMIT_MAX) {
        throw new ConfigError(`PLAN_LIMITS: ${name}.${limit} must be a whole number from 1 to ${LIMIT_MAX}`)
      }
      plans[name as PlanName][limit as keyof PlanLimits] = Number(value)
    }
  }
  return plans
}

function asObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new ConfigError(`${name} must be a JSON object`)
}
