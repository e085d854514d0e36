import type { Tier } from '../catalog/upstream.ts'

const NAMES: Record<Tier, string> = { developer: 'Free', pro: 'Pro', business: 'Elite', enterprise: 'Enterprise' }

/** The lowest plan of a tier, as people are shown it. */
export const planName = (tier: Tier): string => NAMES[tier]
