package netconf

// Kind is the kind of a data node of YANG.
type Kind uint8

// The zero Kind is a container. What YANG calls a presence container is
// treated as any other: it exists if there is something in it.
const (
	KindContainer Kind = iota
	KindList
	KindLeafList
	KindLeaf
)

// A Schema is what [Edit] needs to know of a data model.
type Schema interface {
	// Child returns the data node of that name below parent, which is nil for
	// the root, and whether there is one.
	Child(parent SchemaNode, space, local string) (SchemaNode, bool)
	// Prefix returns the prefix of a namespace, to be used in paths, or "" if
	// the model does not have that namespace.
	Prefix(space string) string
}

// A SchemaNode is a data node of a [Schema].
type SchemaNode interface {
	Kind() Kind
	// Keys returns the names of the keys of a list. They are leaves in the
	// namespace of the list, and every list of a configuration has some.
	Keys() []string
	// Config reports whether the node is configuration, and not state.
	Config() bool
	// Canonical returns the form in which a value of this leaf or leaf-list is
	// stored and compared, or an error if it is not a value of its type. An
	// [*Error] goes to the client with the path added if it has none; any
	// other becomes the message of an invalid-value.
	Canonical(text string) (string, error)
}
