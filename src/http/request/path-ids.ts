import Type from 'typebox'

/**
 * Parameters of a path. Any text fits. If an id is malformed, it names nothing, which is a 404, not
 * a 400.
 */
export const IdParams = Type.Object({ id: Type.String() })
export const SlugParams = Type.Object({ slug: Type.String() })
export const NameParams = Type.Object({ name: Type.String() })
