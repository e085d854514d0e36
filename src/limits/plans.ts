import type { Tier } from '../catalog/upstream.ts'
import type { PlanName } from '../config.ts'

export const TIERS: readonly Tier[] = ['developer', 'pro', 'business', 'enterprise']

export const PLAN_OF_TIER: Readonly<Record<Tier, PlanName>> = {
  developer: 'Free',
  pro: 'Pro',
  business: 'Elite',
  enterprise: 'Elite (contract)',
}

/** A number of calls in words: `1 call`, `10 calls`. */
export const callsOf = (count: number): string => `${count} ${count === 1 ? 'call' : 'calls'}`

export function isTierAtLeast(tier: Tier, required: Tier): boolean {
  return TIERS.indexOf(tier) >= TIERS.indexOf(required)
}

/**
 * Weight with which an account shares an upstream's cap while other accounts have demand. Each
 * weight must divide `COST` of caps/scripts.ts, because tags have no fractions.
 */
export const WEIGHT_OF_TIER: Readonly<Record<Tier, number>> = { developer: 1, pro: 2, business: 4, enterprise: 8 }
