export function escapeHtml(text: unknown): string
