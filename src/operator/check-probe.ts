import { type Api, PAUSED_RETRY_MS } from '../catalog/catalog.ts'
import { GatewayError } from '../errors.ts'

/**
 * Refuses a probe that would not be sent, so that the operator does not wait for nothing.
 *
 * @throws GatewayError API_NOT_ENABLED or API_PAUSED. The message says what to do first.
 */
export function checkProbe({ enabled, isSwitchedOff, pausedMode }: Api): void {
  if (isSwitchedOff) {
    throw new GatewayError('API_NOT_ENABLED', {
      message: 'An operator disabled this API. Enable it before you probe it.',
      hint: 'Enable it first',
    })
  }
  if (!enabled) {
    throw new GatewayError('API_NOT_ENABLED', {
      message: 'The gateway has no key of its own for this API. Set a key before you probe it.',
      hint: 'Set a key first',
    })
  }
  if (pausedMode === 'hold') {
    throw new GatewayError('API_PAUSED', {
      message:
        'This API is paused with mode hold, which holds its probes too. Resume it before you probe it, or pause it with mode refuse.',
      hint: 'Resume it first',
      retryAfterMs: PAUSED_RETRY_MS,
    })
  }
}
