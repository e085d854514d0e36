import Type from 'typebox'

/**
 * Parameters of a path. Any text is allowed, because a malformed id names nothing, which is a 404
 * and not a 400.
 */
export const IdParams = Type.Object({ id: Type.String() })
export const SlugParams = Type.Object({ slug: Type.String() })
export const NameParams = Type.Object({ name: Type.String() })
