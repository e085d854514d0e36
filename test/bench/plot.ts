import { median, type Rounds } from './judge.ts'

const WIDTH = 720
const BAR = 18
const LEFT = 200

/**
 * Draws the cost of a call by scenario and subject as an SVG: bars of CPU seconds per 1 000 calls.
 */
export function plotCosts(results: { scenario: string; rounds: Rounds }[]): string {
  const bars = results.flatMap(({ scenario, rounds }) =>
    Object.entries(rounds).map(([subject, all]) => ({
      label: `${scenario} · ${subject}`,
      isOurs: subject !== 'direct' && subject !== 'naive' && subject !== 'plugins',
      cost: median(all.map(({ cpu }) => cpu.sum)),
    })),
  )
  const most = Math.max(...bars.map(({ cost }) => cost), 0.001)
  const rows = bars.map(({ label, isOurs, cost }, index) => {
    const y = 30 + index * (BAR + 6)
    const width = Math.max(1, (cost / most) * (WIDTH - LEFT - 80))
    return (
      `<text x="${LEFT - 8}" y="${y + 13}" text-anchor="end">${label}</text>` +
      `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${isOurs ? '#2563eb' : '#94a3b8'}"/>` +
      `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 13}">${cost.toFixed(3)}</text>`
    )
  })
  const height = 40 + bars.length * (BAR + 6)
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12">` +
    `<rect width="100%" height="100%" fill="#fff"/><text x="8" y="18">CPU seconds per 1 000 calls</text>${rows.join('')}</svg>\n`
  )
}
