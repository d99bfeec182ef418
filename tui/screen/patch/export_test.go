package patch

// InGrid reports whether a zone is the part of the matrix that has the pairs.
func InGrid(id any) bool {
	z, ok := id.(fieldZone)
	return ok && z.part == inGrid
}
