export function pythonName(name: string): string
export function pythonNames(names: readonly string[]): ReadonlyMap<string, string>
export function pythonMember(slug: string): string
export function typescriptName(name: string): string
export function typescriptMember(slug: string): string
