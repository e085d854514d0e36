/** A table whose cells name their column on narrow screens. Heads and cells are HTML. */
export function table(label: string, heads: string[], rows: string[][]): string
